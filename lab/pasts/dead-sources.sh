# C8: third-party sources that died: one that was removed, one whose suite ended
# Page: https://github.com/NVIDIA/nvidia-container-toolkit/issues/94; https://help.launchpad.net/Packaging/PPA
echo "deb [trusted=yes] https://nvidia.github.io/removed/stable/deb/amd64 /" >/etc/apt/sources.list.d/neuron.list
echo "deb http://archive.ubuntu.com/ubuntu-ppa/graphics-drivers $VERSION_CODENAME main" >/etc/apt/sources.list.d/graphics-drivers-ubuntu-ppa.list
