# A1: NVIDIA's open driver of the CUDA network repository, the newest as the page installs it; after cuda-keyring
# Page: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/ ("Driver Installation": apt install nvidia-open)
install_debs "linux-headers-$(uname -r)" gcc make
install_debs nvidia-open
modprobe nvidia
