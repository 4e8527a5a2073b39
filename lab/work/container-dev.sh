# A container with the host's /dev (-v /dev:/dev)
start_container work-container-dev --volume /dev:/dev --
