# C8: third-party sources that died: a repository that is gone, one whose suite ended, one whose key expired
# Page: https://github.com/NVIDIA/nvidia-container-toolkit/issues/94; https://help.launchpad.net/Packaging/PPA
echo "deb [trusted=yes] https://nvidia.github.io/gone/stable/deb/amd64 /" >/etc/apt/sources.list.d/neuron.list
echo "deb http://archive.ubuntu.com/ubuntu-ppa/graphics-drivers $VERSION_CODENAME main" >/etc/apt/sources.list.d/graphics-drivers-ubuntu-ppa.list
