# A container with all GPUs (--gpus all), whose process holds one
need_driver
start_container work-container-process --gpus all -- /dev/nvidia0 /dev/nvidiactl
systemd-run --quiet --collect sh -c 'docker wait work-container-process; /usr/lib/gpu-ready-lab/kernel refresh'
