# A1: NVIDIA's open driver of the CUDA network repository, pinned to branch 580; after cuda-keyring
# Page: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/version-locking.html
install_debs gcc make "linux-headers-$(uname -r)" nvidia-driver-pinning-580
install_debs nvidia-open
modprobe nvidia
