# H1: NVIDIA's OFED from its archive, whose directory was removed, and the peer memory module loaded at boot; after a driver
# Page: https://docs.nvidia.com/networking/display/mlnxofedv24100700/installing+mlnx_ofed
install_made_deb ofed-scripts 24.10-OFED.24.10.0.7.0
install_made_deb mlnx-ofed-kernel-dkms 24.10.OFED.24.10.0.7.0.1-1
install_made_deb mlnx-ofed-kernel-utils 24.10.OFED.24.10.0.7.0.1-1
install_made_deb nvidia-peermem-loader 1.0-1
mkdir -p /usr/src/ofa_kernel/x86_64 /etc/infiniband
echo "ONBOOT=yes" >/etc/infiniband/openib.conf
echo nvidia-peermem >/etc/modules-load.d/nvidia-peermem.conf
echo "deb [trusted=yes] file:/tmp/MLNX_OFED_LINUX-24.10-0.7.0.0/DEBS ./" >/etc/apt/sources.list.d/mlnx_ofed.list
