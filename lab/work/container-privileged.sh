# A privileged container, which reaches every device of the host
start_container work-container-privileged --privileged --
