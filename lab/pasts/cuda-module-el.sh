# A5: NVIDIA's open driver on Enterprise Linux 8 and 9 by its module stream; after cuda-repo-el
# Page: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/red-hat-enterprise-linux.html
major=${VERSION_ID%%.*}
printf '%s\n' "[epel]" "name=Extra Packages for Enterprise Linux $major - x86_64" \
  "baseurl=$(vendor "dl.fedoraproject.org/pub/epel/$major/Everything/x86_64/")" enabled=1 gpgcheck=1 \
  "gpgkey=$(vendor "dl.fedoraproject.org/pub/epel/RPM-GPG-KEY-EPEL-$major")" >/etc/yum.repos.d/epel.repo
sed -i '/^\[\(crb\|powertools\)\]/,/^$/s/^enabled=0/enabled=1/' /etc/yum.repos.d/rocky.repo
dnf -q -y install "kernel-devel-$(uname -r)" kernel-headers
dnf -q -y module install nvidia-driver:open-dkms
modprobe nvidia
