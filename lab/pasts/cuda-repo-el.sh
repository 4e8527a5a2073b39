# A5: NVIDIA's CUDA repository on Enterprise Linux, without a driver yet
# Page: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/ ("dnf config-manager --add-repo .../cuda-rhel9.repo")
distro=rhel${VERSION_ID%%.*}
download "https://developer.download.nvidia.com/compute/cuda/repos/$distro/x86_64/cuda-$distro.repo" "/etc/yum.repos.d/cuda-$distro.repo"
dnf -q -y makecache
