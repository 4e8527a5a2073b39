"""The framework check: TensorFlow or PyTorch, in a container of its own, must see every GPU of the container."""

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
