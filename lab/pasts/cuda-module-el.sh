# A5: NVIDIA's open driver on Enterprise Linux 8 and 9 by its module stream; after cuda-repo-el
# Page: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/red-hat-enterprise-linux.html
dnf -q -y install "https://dl.fedoraproject.org/pub/epel/epel-release-latest-${VERSION_ID%%.*}.noarch.rpm"
sed -i '/^\[\(crb\|powertools\)\]/,/^$/s/^enabled=0/enabled=1/' /etc/yum.repos.d/rocky.repo
dnf -q -y install "kernel-devel-$(uname -r)" kernel-headers
dnf -q -y module install nvidia-driver:open-dkms
modprobe nvidia
