"""The framework check: TensorFlow or PyTorch in a container of its own has to see as many GPUs as it is given."""

import json
from typing import Any, Dict, List, NamedTuple, Optional

from ..base.host import TIMED_OUT, Result
from ..diagnostics import messages
from .checks import Check, judge
from .compute import NO_PYTHON

NONE = "none"
IMAGES = {"tensorflow": "tensorflow/tensorflow:latest-gpu", "pytorch": "pytorch/pytorch:latest"}
"""Images of the frameworks' own projects."""

PROGRAMS = {
    "tensorflow": """
import json, tensorflow
config = tensorflow.config
gpus = getattr(config, "list_physical_devices", None) or config.experimental.list_physical_devices
print(json.dumps({"version": tensorflow.__version__, "count": len(gpus("GPU"))}))
""",
    "pytorch": """
import json, torch
print(json.dumps({"version": str(torch.__version__), "built_for": torch.version.cuda,
                  "count": torch.cuda.device_count() if torch.cuda.is_available() else 0}))
""",
}
MODULES = {"tensorflow": "tensorflow", "pytorch": "torch"}


class Answer(NamedTuple):
    """What a framework saw: ``seen`` GPUs, or None with what went wrong."""

    framework: str
    image: str
    seen: Optional[int] = None
    version: Optional[str] = None
    said: str = ""
    cause: str = ""
    remedy: str = ""


def read(framework: str, image: str, result: Result) -> Answer:
    """Read what the program printed in its container; its warnings stand on the other stream."""
    empty = Answer(framework, image, said=last_line(result.err) or last_line(result.out) or "nothing")
    if result.rc == TIMED_OUT:
        cause = "the image is large and still on its way, or the framework hangs"
        return empty._replace(cause=cause, remedy="pull %s beforehand, or raise gpu_verify_timeout" % image)
    if "No module named '%s'" % MODULES[framework] in result.err:
        cause = "the image %s holds no %s" % (image, framework)
        return empty._replace(cause=cause, remedy="correct gpu_verify_framework_image")
    if result.rc != 0 and NO_PYTHON.search(result.err):
        cause = "the image %s has no python3" % image
        return empty._replace(cause=cause, remedy="correct gpu_verify_framework_image")
    if result.rc != 0:
        known = messages.explain("container-error", result.err)
        cause = known[0].cause if known else "%s broke off" % framework
        remedy = known[0].remedy if known else "run it by hand in a container of %s" % image
        if "Unable to find image" in result.err or (known and known[0].code == "image_missing"):
            cause = "the image is not on the host and could not be pulled"
            remedy = "set gpu_verify_framework_image to an image that the host can pull, or pull %s beforehand" % image
        return empty._replace(cause=cause, remedy=remedy)
    for line in reversed(result.out.splitlines()):
        if line.startswith("{"):
            row: Dict[str, Any] = json.loads(line)
            return Answer(framework, image, row["count"], row["version"])
    return empty._replace(cause="%s printed no number" % framework, remedy="run it by hand in a container of " + image)


def last_line(text: str) -> str:
    """Return the last line that says something and is no hint of docker's."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "--help" not in line]
    return lines[-1][:400] if lines else ""


def check(answer: Optional[Answer], wanted: List[Dict[str, Any]]) -> List[Check]:
    """Check that the framework sees the wanted GPUs; nothing where none was asked for."""
    if answer is None:
        return []
    expected = "%s sees %d GPU%s" % (answer.framework, len(wanted), "" if len(wanted) == 1 else "s")
    if answer.seen is None:
        return [judge("framework", False, expected, answer.said, answer.cause, answer.remedy)]
    found = "%d in %s %s of %s" % (answer.seen, answer.framework, answer.version, answer.image)
    if answer.seen == 0:
        cause = "%s is built without CUDA, or for a newer CUDA than the driver has" % answer.framework
        remedy = "take an image with GPU support for an older CUDA, or install a newer driver"
    else:
        cause = "%s leaves GPUs out that nvidia-smi shows" % answer.framework
        remedy = (
            "look for GPUs too old for this %s, for MIG, and for CUDA_VISIBLE_DEVICES in the image" % answer.framework
        )
    return [judge("framework", answer.seen == len(wanted), expected, found, cause, remedy)]
