"""Names of the container engines, as nvidia_container_runtime_engines has them."""

DOCKER = "docker"
PODMAN = "podman"
CONTAINERD = "containerd"
CRIO = "crio"
K3S = "k3s"
RKE2 = "rke2"
ENGINES = (DOCKER, PODMAN, CONTAINERD, CRIO, K3S, RKE2)
RANCHER = (K3S, RKE2)
"""Kubernetes distributions that run a containerd of their own, whose configuration they write at each start."""
OF_CONTAINERD = (CONTAINERD, K3S, RKE2)
OF_KUBERNETES = (CONTAINERD, CRIO, K3S, RKE2)
