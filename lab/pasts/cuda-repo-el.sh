# A5: NVIDIA's CUDA repository on Enterprise Linux, without a driver yet
# Page: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/ ("dnf config-manager --add-repo .../cuda-rhel9.repo")
distro=rhel${VERSION_ID%%.*}
repository=$(vendor "developer.download.nvidia.com/compute/cuda/repos/$distro/x86_64")
case $distro in rhel10) key=CDF6BA43.pub ;; *) key=D42D0685.pub ;; esac
printf '%s\n' "[cuda-$distro-x86_64]" "name=cuda-$distro-x86_64" "baseurl=$repository" enabled=1 gpgcheck=1 "gpgkey=$repository/$key" \
  >"/etc/yum.repos.d/cuda-$distro.repo"
dnf -q -y makecache
