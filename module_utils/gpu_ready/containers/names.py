"""Names of the container engines, as nvidia_container_runtime_engines has them."""

DOCKER = "docker"
PODMAN = "podman"
CONTAINERD = "containerd"
ENGINES = (DOCKER, PODMAN, CONTAINERD)
