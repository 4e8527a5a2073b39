"""Verification in containers: the image, the arguments, and nvidia-smi's answer."""

import random
import re
from typing import List, Optional, Sequence

from ..base import files
from ..base.errors import GpuReadyError
from ..base.evidence import FailureEvidence, Search, explained_later
from ..base.host import MISSING, TIMED_OUT, Host, Result
from ..containers import cdi
from ..containers import engine as engines
from ..facts import engines as facts_engines
from . import devices as device_selection
from . import nvml
from .devices import selectors
from .expectation import VerifyExpectation

TIMEOUT = 300.0
"""Seconds for one container, including the pull of its image."""
IMAGE = "ubuntu:24.04"
ENVIRONMENT = ["NVIDIA_DRIVER_CAPABILITIES=compute,utility"]


class VerifyError(GpuReadyError):
    """The verification could not run."""


def docker_args(host: Host, expect: VerifyExpectation, devices: str, gpus: Sequence[nvml.NvmlGpu]) -> List[str]:
    """Return Docker's arguments for the selected devices: of the plan, or printed by the driver volume's helper."""
    helper = expect.runtime.helper if expect.runtime else None
    if not helper:
        return device_selection.docker_args(expect, devices, gpus)
    answer = host.run([helper] + selectors(devices), timeout=60.0)
    if answer.rc != 0:
        raise VerifyError(
            "%s: it printed no arguments for docker (%s). Run site.yml again, which writes it."
            % (helper, reason_line(answer.err) or "no output")
        )
    return answer.out.split()


def engine_args(
    host: Host, engine: str, expect: VerifyExpectation, devices: str, gpus: Sequence[nvml.NvmlGpu]
) -> Optional[List[str]]:
    """Return arguments that give a container the selected devices; None if this ``ctr`` has none for them."""
    if engine == engines.DOCKER:
        return docker_args(host, expect, devices, gpus)
    mode = expect.mode or ""
    if engine == engines.CONTAINERD and mode != "toolkit":  # k3s and RKE2 with CDI have newer ones
        version = facts_engines.read_version(host, engine, {})
        if version and tuple(version) < engines.FIRST_CTR_CDI:
            return engines.ctr_arguments(host.read(cdi.NATIVE) or "", selectors(devices))
    return device_selection.select_devices(engines.gpu_args(engine, mode), devices, gpus)


def run_in(host: Host, engine: str, image: str, args: List[str], command: List[str], timeout: float) -> Result:
    """Run a command in a new container; one that exceeds a limit is removed by its name."""
    pull = engines.pull_command(engine, image)
    if pull:
        asked = host.run(engines.inspect_command(engine, image), timeout=60.0)
        if asked.rc == 0 and not engines.has_image(engine, asked.rc, asked.out):
            pulled = host.run(pull, timeout=timeout)
            if pulled.rc != 0:
                return pulled
    name = "gpu-ready-verify-%08x" % random.SystemRandom().getrandbits(32)
    ended = False
    try:
        result = host.run(engines.run_command(engine, name, ENVIRONMENT, args, image, command), timeout=timeout)
        ended = result.rc != TIMED_OUT
    finally:
        if not ended:
            for argv in engines.remove_commands(engine, name):
                host.run(argv, timeout=30.0)
    return result


def available_engines(host: Host, docker_active: bool, expect: VerifyExpectation) -> List[str]:
    """Return engines of the plan whose program can be asked for a container."""
    found = []
    for engine in expect.engine_names:
        if engine == engines.DOCKER:
            available = docker_active
        else:
            name = engines.program(engine)
            available = bool(name) and (host.exists(name) if "/" in name else host.which(name) is not None)
        found += [engine] if available else []
    return found


def reason_line(text: str) -> Optional[str]:
    """Return the line that holds the reason: docker prints it last in its chain, before the hint about --help."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "docker run --help" not in line]
    lines = [line for line in lines if not line.startswith("See 'docker run")]
    reasons = [
        line for line in lines if re.search(r"error|fail|could not|unresolvable|denied|Unable", line, re.IGNORECASE)
    ]
    if not lines:
        return None
    chosen = (reasons or lines)[-1]
    return chosen if len(chosen) <= 400 else chosen[:200] + " ... " + chosen[-190:]


def image_name(image: str, archive: str) -> str:
    """Return the given name, one made from the tarball's checksum, or the default."""
    if image or not archive:
        return image or IMAGE
    try:
        return "gpu-ready/verify:" + files.checksum(archive)[:12]
    except OSError as error:
        raise VerifyError(
            "image tarball %s: it is neither on the control node nor on this host. Correct gpu_verify_image." % archive
        ) from error


def load_image(host: Host, archive: str, image: str, timeout: float = TIMEOUT, engine: str = engines.DOCKER) -> None:
    """Load ``image`` from a tarball if the engine has no image of this name; the tarball's own tag is removed."""
    if not engines.program(engine):
        return  # it starts no container here, which the verdict reports
    asked = host.run(engines.inspect_command(engine, image), timeout=60.0)
    if (
        engines.has_image(engine, asked.rc, asked.out)
        or asked.rc == MISSING
        or "Cannot connect to the Docker daemon" in asked.err
    ):
        return  # present; or no engine answers, which the verdict reports with everything else
    if not host.exists(archive):
        raise VerifyError("image tarball %s: it is missing on this host. Run the role gpu_verify again." % archive)
    names = host.run(engines.list_command(engine), timeout=60.0)
    result = host.run(engines.load_command(engine, archive), timeout=timeout)
    name = engines.loaded_name(engine, result.out + result.err) if result.rc == 0 else None
    if engine in engines.OF_CONTAINERD and result.rc == 0:
        # ctr 2 prints the name of an imported image with blanks in place of dashes.
        fresh = [
            one
            for one in host.run(engines.list_command(engine), timeout=60.0).out.split()
            if one not in names.out.split()
        ]
        name = fresh[0] if fresh else name
    if name is None:
        reason = reason_line(result.err or result.out) or "no output"
        unknown = "%s. Remedy: create it with 'docker save IMAGE -o FILE.tar'" % reason
        search = Search([("container-error", result.err)], ["container_other"])  # that one is about containers
        why = explained_later(FailureEvidence([search], unknown=unknown))
        raise VerifyError("image tarball %s: %s cannot load it: %s" % (archive, engine, why))
    tagged = host.run(engines.tag_command(engine, name, image), timeout=60.0)
    if tagged.rc != 0:
        raise VerifyError(
            "image %s: %s cannot tag it (%s). Run this again."
            % (image, engine, reason_line(tagged.err) or "no reason given")
        )
    known = names.out.split() + [engines.image_name(engine, image)]
    if names.rc == 0 and not name.startswith("sha256:") and name not in known:
        removed = host.run(engines.untag_command(engine, name), timeout=60.0)
        if removed.rc != 0:
            raise VerifyError(
                "image %s: %s cannot remove this tag of the tarball (%s). Run '%s' by hand."
                % (
                    name,
                    engine,
                    reason_line(removed.err) or "no reason given",
                    " ".join(engines.untag_command(engine, name)),
                )
            )
