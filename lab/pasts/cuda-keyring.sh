# A1: NVIDIA's CUDA network repository, by its package cuda-keyring, without a driver yet
# Page: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/ (Ubuntu and Debian: "Network Repository Installation")
install_debs ca-certificates curl
distro=$ID$(echo "$VERSION_ID" | tr -d .)
download "https://developer.download.nvidia.com/compute/cuda/repos/$distro/x86_64/cuda-keyring_1.1-1_all.deb" /root/cuda-keyring_1.1-1_all.deb
dpkg -i /root/cuda-keyring_1.1-1_all.deb
apt-get -q update
