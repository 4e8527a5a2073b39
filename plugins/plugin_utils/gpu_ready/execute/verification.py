# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The step of the verification."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from ....module_utils.gpu_ready.containers import engine as engines
from ....module_utils.gpu_ready.containers.names import ENGINES
from ....module_utils.gpu_ready.facts.model import VerifiedFacts
from ..plan.changes import FactChange, set_to
from .effects import Before, Declared
from .model import COPY, DIRECTORY, Answer, Execution, Parameters, StepFailed

TARBALL = re.compile(r".+[.]tar([.](gz|xz))?$")
NO_IMAGE = (1, 125)
MISSING = (2, 125)
"""Status of a question: the program is missing, podman cannot use its storage; the verification reports both."""


def needs_image(engine: str, tag: str, part: Execution) -> bool:
    """Return whether an engine has to load the image. Raises StepFailed."""
    try:
        answer = part.command(*engines.inspect_command(engine, tag))
    except StepFailed as error:
        if error.result.get("rc") not in (*NO_IMAGE, *MISSING):
            raise
        return error.result["rc"] in NO_IMAGE or engine in engines.OF_CONTAINERD
    return not engines.has_image(engine, 0, answer.get("stdout") or "")


def copy_image(step: Parameters, path: Path, part: Execution) -> tuple[str, str]:
    """Copy an image of the control node if an engine has none of it; return its tag and its path on the host."""
    with path.open("rb") as file:
        tag = f"gpu-ready/verify:{hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"
    expected = (step["expect"].get("engines") or {}).get("names", [engines.DOCKER])
    asked = [one for one in expected if one in ENGINES and engines.program(one)]
    needing = [needs_image(engine, tag, part) for engine in asked]
    if any(needing):
        # The slash makes copy create the directory; the module deletes it after every engine has loaded the image.
        copy = {"src": str(path.resolve()), "dest": f"{DIRECTORY}/verify/", "mode": "0600"}
        part.run("ansible.builtin.copy", copy, COPY)
    return tag, f"{DIRECTORY}/verify/{path.name}"


def verify(step: Parameters, part: Execution) -> None:
    """Compare PCI bus, driver and container, GPU by GPU."""
    setting = part.modules.setting
    image, tag, archive = str(setting("gpu_verify_image")), "", ""
    is_name = not TARBALL.match(image)
    copied = not is_name and not part.modules.check and Path(image).is_file()
    if copied:
        tag, archive = copy_image(step, Path(image), part)
    elif not is_name:
        archive = image
    devices = setting("gpu_verify_devices")
    arguments: Answer = {
        "expect": step["expect"],
        "digest": step["digest"],
        "image": image if is_name else tag,
        "archive": archive,
        "remove_archive": copied,
        "devices": ",".join(map(str, devices if isinstance(devices, list) else [devices])),
    }
    for name in ("gpu_verify_compute", "gpu_verify_framework", "gpu_verify_framework_image", "gpu_verify_timeout"):
        arguments[name.removeprefix("gpu_verify_")] = setting(name)
    part.verified = part.run("gpu_verify", arguments, COPY)


def verify_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the record of a verification that has passed."""
    base, driver, docker = before.facts.base, before.facts.driver, before.facts.docker
    runtime = step["expect"].get("runtime") or {}
    record = VerifiedFacts(
        ok=True,
        result="verified",
        boot_id=base.boot_id,
        driver=driver.loaded.version if driver.loaded else None,
        userspace=driver.userspace,
        addresses=[gpu.address for gpu in base.gpus],
        digest=step["digest"],
        time="now",
        runtime=(runtime or step["expect"].get("engines") or {}).get("mode"),
        gpus_option_with=docker.started if "--gpus" in runtime.get("args", []) else None,
    )
    yield set_to("verified", record)


STEPS: dict[str, Declared] = {"gpu_verify.verify": Declared(verify, verify_effects)}
