# E2: Azure's HPC image on Enterprise Linux: a fabric manager as package beside the .run driver, both excluded in dnf.conf; after runfile and cuda-repo-el
# Page: https://github.com/Azure/azhpc-images/blob/master/components/install_nvidia_fabric_manager.sh
dnf -q -y install https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/nvidia-fabricmanager-580.95.05-1.el9.x86_64.rpm
systemctl enable nvidia-fabricmanager
echo "exclude=*nvidia-container* nvidia-fabricmanager gdrcopy*" >>/etc/dnf/dnf.conf
sed -i '/^gpgkey=/a excludepkgs=mft* kernel-mft*' /etc/yum.repos.d/cuda-rhel9.repo
