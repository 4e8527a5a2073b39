# A container with all GPUs (--gpus all), none of which it has open
need_driver
start_container work-container-gpus --gpus all --
