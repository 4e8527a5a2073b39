"""What a framework printed in its container, and the verdict on it. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.base.host import TIMED_OUT, Result
from ....module_utils.gpu_ready.base.json_file import parse_json
from ....module_utils.gpu_ready.verify.compute import NO_PYTHON
from ..diagnostics import messages
from .checks import Check, gpu_count, judge

MODULES = {"tensorflow": "tensorflow", "pytorch": "torch"}


class FrameworkResult(NamedTuple):
    """``gpus``: how many the framework sees; None with the message, cause and remedy of a failure."""

    framework: str
    image: str
    gpus: int | None = None
    version: str | None = None
    message: str = ""
    cause: str = ""
    remedy: str = ""


def parse_result(framework: str, image: str, result: Result) -> FrameworkResult:
    """Interpret the program's output in its container; its warnings are on stderr."""
    failure = FrameworkResult(framework, image, message=last_line(result.err) or last_line(result.out) or "no output")
    if result.rc == TIMED_OUT:
        cause = "the image is still being pulled, or the framework hangs"
        return failure._replace(cause=cause, remedy="pull %s beforehand, or raise gpu_verify_timeout" % image)
    if "No module named '%s'" % MODULES[framework] in result.err:
        cause = "%s is not installed in the image %s" % (framework, image)
        return failure._replace(cause=cause, remedy="correct gpu_verify_framework_image")
    if result.rc != 0 and NO_PYTHON.search(result.err):
        cause = "the image %s has no python3" % image
        return failure._replace(cause=cause, remedy="correct gpu_verify_framework_image")
    if result.rc != 0:
        known = messages.explain("container-error", result.err)
        cause = known[0].cause if known else "%s failed" % framework
        remedy = known[0].remedy if known else "run it by hand in a container of %s" % image
        if "Unable to find image" in result.err or (known and known[0].code == "image_missing"):
            cause = "the image is not on the host and could not be pulled"
            remedy = "set gpu_verify_framework_image to an image that the host can pull, or pull %s beforehand" % image
        return failure._replace(cause=cause, remedy=remedy)
    for line in reversed(result.out.splitlines()):
        try:
            row = parse_json(line)
            return FrameworkResult(framework, image, int(row["count"]), str(row["version"]))
        except (ValueError, OverflowError, TypeError, KeyError):
            continue
    return failure._replace(
        cause="%s printed no number" % framework, remedy="run it by hand in a container of " + image
    )


def last_line(text: str) -> str:
    """Return the last line with text that is not a hint of docker's."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "--help" not in line]
    return lines[-1][:400] if lines else ""


def check(result: FrameworkResult | None, gpus: Sequence[object]) -> list[Check]:
    """Judge whether the framework sees all ``gpus``; None: no framework was requested."""
    if result is None:
        return []
    expected = "%s sees %s" % (result.framework, gpu_count(gpus))
    if result.gpus is None:
        return [judge("framework", False, expected, result.message, result.cause, result.remedy)]
    found = "%d in %s %s of %s" % (result.gpus, result.framework, result.version, result.image)
    if result.gpus == 0:
        cause = "%s is built without CUDA, or for a newer CUDA than the driver has" % result.framework
        remedy = "use an image with GPU support for an older CUDA, or install a newer driver"
    else:
        cause = "%s misses GPUs that nvidia-smi shows" % result.framework
        remedy = (
            "check for GPUs too old for this %s, for MIG, and for CUDA_VISIBLE_DEVICES in the image" % result.framework
        )
    return [judge("framework", result.gpus == len(gpus), expected, found, cause, remedy)]
