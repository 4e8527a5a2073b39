"""What a change does to running work: the names in plans, in messages and in gpu_ready_disrupt."""

NONE = "none"
CONTAINERD_RESTART = "containerd_restart"
KUBERNETES_RESTART = "kubernetes_restart"
DOCKER_RELOAD = "docker_reload"
DOCKER_RESTART = "docker_restart"
DRIVER_RELOAD = "driver_reload"
REBOOT = "reboot"
DISRUPTIONS = (NONE, CONTAINERD_RESTART, KUBERNETES_RESTART, DOCKER_RELOAD, DOCKER_RESTART, DRIVER_RELOAD, REBOOT)
"""All of them, least first."""
