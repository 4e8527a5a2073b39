# D3: ELRepo's driver, branch 580
# Page: https://elrepo.org/tiki/kmod-nvidia
major=${VERSION_ID%%.*}
download https://www.elrepo.org/RPM-GPG-KEY-v2-elrepo.org /root/RPM-GPG-KEY-v2-elrepo.org
rpm --import /root/RPM-GPG-KEY-v2-elrepo.org
dnf -q -y install "https://www.elrepo.org/elrepo-release-$major.el$major.elrepo.noarch.rpm"
dnf -q -y install "https://dl.fedoraproject.org/pub/epel/epel-release-latest-$major.noarch.rpm"
sed -i '/^\[\(crb\|powertools\)\]/,/^$/s/^enabled=0/enabled=1/' /etc/yum.repos.d/rocky.repo
dnf -q -y install kmod-nvidia-580xx nvidia-x11-drv-580xx
modprobe nvidia
