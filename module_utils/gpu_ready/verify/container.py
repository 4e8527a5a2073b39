"""Containers that prove a host: the image they come from, what they are started with, what nvidia-smi says in them."""

import random
import re
from typing import Any, Dict, List, Optional

from ..base import files
from ..base.errors import GpuReadyError
from ..base.host import MISSING, TIMED_OUT, Host, Result
from ..containers import cdi
from ..containers import engine as engines
from ..diagnostics import messages
from ..facts import engines as observe_engines
from . import nvml
from .devices import device_words, engine_names, mode_of, narrowed, run_args

TIMEOUT = 300.0
"""Seconds for one container; pulling its image from a registry may be part of it."""
IMAGE = "ubuntu:24.04"
ENVIRONMENT = ["NVIDIA_DRIVER_CAPABILITIES=compute,utility"]


class VerifyError(GpuReadyError):
    """The verification could not be made; the text says thing, cause and remedy."""


def docker_args(host: Host, expect: Dict[str, Any], chosen: str, gpus: List[Dict[str, Any]]) -> List[str]:
    """Return docker's arguments for the chosen devices: of the plan, or what the driver volume's helper prints."""
    helper = (expect.get("runtime") or {}).get("helper")
    if not helper:
        return run_args(expect, chosen, gpus)
    answer = host.run([str(helper)] + device_words(chosen), timeout=60.0)
    if answer.rc != 0:
        said = last_words(answer.err) or "it said nothing"
        raise VerifyError("%s names no arguments for docker: %s." % (helper, said))
    return answer.out.split()


def args_for(
    host: Host, engine: str, expect: Dict[str, Any], chosen: str, gpus: List[Dict[str, Any]]
) -> Optional[List[str]]:
    """Return what gives a container of an engine the chosen devices, None where ``ctr`` has no word for it."""
    if engine == engines.DOCKER:
        return docker_args(host, expect, chosen, gpus)
    mode = mode_of(expect) or ""
    if engine == engines.CONTAINERD and mode != "toolkit":
        version = observe_engines.program(host, engine, {})["version"]
        if version and tuple(version) < engines.FIRST_CTR_CDI:
            return engines.applied(host.read(cdi.NATIVE) or "", device_words(chosen))
    return narrowed(engines.gpu_args(engine, mode), chosen, gpus)


def run_in(host: Host, engine: str, image: str, args: List[str], command: List[str], timeout: float) -> Result:
    """Run a command in a new container; one that does not come back in time is removed by its name."""
    pull = engines.pull(engine, image)
    if pull:
        asked = host.run(engines.ask(engine, image), timeout=60.0)
        if asked.rc == 0 and not engines.is_there(engine, asked.rc, asked.out):
            pulled = host.run(pull, timeout=timeout)
            if pulled.rc != 0:
                return pulled
    name = "gpu-ready-verify-%08x" % random.SystemRandom().getrandbits(32)
    result = host.run(engines.run(engine, name, ENVIRONMENT, args, image, command), timeout=timeout)
    if result.rc == TIMED_OUT:
        for argv in engines.remove(engine, name):
            host.run(argv, timeout=30.0)
    return result


def usable(host: Host, observed: Dict[str, Any], expect: Dict[str, Any]) -> List[str]:
    """Return the engines of the plan that can be asked to start a container."""
    found = []
    for engine in engine_names(expect):
        if engine == engines.DOCKER:
            there = bool((observed.get("docker") or {}).get("active"))
        else:
            there = host.which("ctr" if engine == engines.CONTAINERD else engine) is not None
        found += [engine] if there else []
    return found


def look(host: Host, engine: str, image: str, args: List[str], timeout: float) -> Dict[str, Any]:
    """Ask nvidia-smi in a container."""
    return nvml.as_dict(read_container(run_in(host, engine, image, args, nvml.QUERY, timeout)))


def read_container(result: Result) -> nvml.Answer:
    """Return what nvidia-smi said in a container, its failures explained with docker's own in mind."""
    if result.rc in (0, 14):
        return nvml.from_smi(result)._replace(how="container")
    text = "\n".join(part for part in (result.err, result.out) if part.strip())
    found = messages.explain_container(result.rc, text)
    return nvml.Answer(False, "container", [], found.code, last_words(text), found.cause, found.remedy)


def last_words(text: str) -> Optional[str]:
    """Return the line that holds the reason: docker names it last in its chain, before its hint about --help."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "docker run --help" not in line]
    lines = [line for line in lines if not line.startswith("See 'docker run")]
    reason = [
        line for line in lines if re.search(r"error|fail|could not|unresolvable|denied|Unable", line, re.IGNORECASE)
    ]
    if not lines:
        return None
    chosen = (reason or lines)[-1]
    return chosen if len(chosen) <= 400 else chosen[:200] + " ... " + chosen[-190:]


def image_name(image: str, archive: str) -> str:
    """Return the name of the image: the given one, one made of a tarball's checksum, or the usual one."""
    if image or not archive:
        return image or IMAGE
    try:
        return "gpu-ready/verify:" + files.checksum(archive)[:12]
    except OSError as error:
        raise VerifyError(
            "The image tarball %s is neither on the control node nor on this host: correct gpu_verify_image." % archive
        ) from error


def load_image(host: Host, archive: str, image: str, timeout: float = TIMEOUT, engine: str = engines.DOCKER) -> None:
    """Make the engine know ``image``, from a tarball where it does not yet; the tarball's own name does not stay."""
    asked = host.run(engines.ask(engine, image), timeout=60.0)
    if (
        engines.is_there(engine, asked.rc, asked.out)
        or asked.rc == MISSING
        or "Cannot connect to the Docker daemon" in asked.err
    ):
        return  # it is there; or no engine answers, and the verdict says so with everything else that is wrong
    if not host.exists(archive):
        raise VerifyError("The image tarball %s is not on this host: run the role gpu_verify again." % archive)
    names = host.run(engines.images(engine), timeout=60.0)
    result = host.run(engines.load(engine, archive), timeout=timeout)
    name = engines.loaded(engine, result.out + result.err) if result.rc == 0 else None
    if engine == engines.CONTAINERD and result.rc == 0:
        # ctr 2 prints the name of what it imported with spaces for dashes.
        fresh = [
            one for one in host.run(engines.images(engine), timeout=60.0).out.split() if one not in names.out.split()
        ]
        name = fresh[0] if fresh else name
    if name is None:
        found = messages.explain_container(result.rc, result.err)
        said = last_words(result.err or result.out) or "it said nothing"
        remedy = found.remedy if found.code == "docker_not_running" else "make it with 'docker save IMAGE -o FILE.tar'"
        raise VerifyError("%s cannot load the image tarball %s (%s): %s." % (engine, archive, said, remedy))
    tagged = host.run(engines.tag(engine, name, image), timeout=60.0)
    if tagged.rc != 0:
        raise VerifyError(
            "%s cannot name the loaded image %s: %s." % (engine, image, last_words(tagged.err) or "no reason given")
        )
    known = names.out.split() + [engines.name(engine, image)]
    if names.rc == 0 and not name.startswith("sha256:") and name not in known:
        removed = host.run(engines.forget(engine, name), timeout=60.0)
        if removed.rc != 0:
            raise VerifyError(
                "%s cannot forget the tarball's name %s of the image (%s): run '%s' by hand."
                % (engine, name, last_words(removed.err) or "no reason given", " ".join(engines.forget(engine, name)))
            )
