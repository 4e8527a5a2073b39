# A container without a GPU
start_container work-container --
