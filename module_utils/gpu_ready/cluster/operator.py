"""What NVIDIA's GPU Operator, and its DRA driver, need of a cluster."""

import re
from typing import Dict, Optional, Tuple

from ..base.errors import GpuReadyError
from .kubectl import Kubectl
from .objects import KINDS, MANAGER, OWNER_LABEL, describe
from .pods import short

DRA_KUBERNETES = (1, 34, 2)
"""For resource.k8s.io/v1 as the driver uses it: gpu-operator/dra-intro-install.rst of NVIDIA/cloud-native-docs."""
DRA_DRIVER = 580
VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})")


def parse_version(text: str) -> Optional[Tuple[int, int, int]]:
    """Return the version of a server such as v1.34.2+k3s1; None for other texts."""
    found = VERSION.match(text)
    return (int(found.group(1)), int(found.group(2)), int(found.group(3))) if found else None


def check(kubectl: Kubectl) -> str:
    """Return the version of the server. GpuReadyError where gpu-ready's own device plugin is in the cluster."""
    owned = kubectl.get(KINDS, "--all-namespaces", "--selector=%s=%s" % (OWNER_LABEL, MANAGER))
    if owned:
        raise GpuReadyError(
            "%s: gpu_kubernetes: device_plugin applied it, and the Operator has its own device plugin. Remove it with "
            "gpu_kubernetes: none, then run again." % describe(owned[0])
        )
    version = (kubectl.read(["version", "--output=json"]).get("serverVersion") or {}).get("gitVersion", "")
    return short(version) if version else ""


def check_dra(server: str, has_cdi: bool) -> None:
    """GpuReadyError with everything that the DRA driver needs of the cluster and that is missing."""
    missing = []
    version = parse_version(server)
    if version is None or version < DRA_KUBERNETES:
        needed = ".".join(str(part) for part in DRA_KUBERNETES)
        missing.append("Kubernetes %s or newer (the server is %s)" % (needed, server or "of an unknown version"))
    if not has_cdi:
        missing.append("gpu_kubernetes_device_list: cdi-cri, with CDI in the engines")
    if missing:
        raise GpuReadyError("NVIDIA's DRA driver needs %s. Use gpu_kubernetes_dra: false here." % " and ".join(missing))


def refuse_drivers(drivers: Dict[str, str]) -> Dict[str, str]:
    """Return why nodes cannot use the DRA driver, by node; ``drivers``: versions by node, as the hosts answered."""
    return {
        node: "NVIDIA's DRA driver needs driver %d or newer (found %s). Upgrade it, or use "
        "gpu_kubernetes_dra: false." % (DRA_DRIVER, short(driver) if driver else "none")
        for node, driver in sorted(drivers.items())
        if not re.match(r"\d{1,9}\.", driver) or int(driver.partition(".")[0]) < DRA_DRIVER
    }
