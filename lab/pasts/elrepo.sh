# D3: ELRepo's driver
# Page: https://elrepo.org/tiki/kmod-nvidia
major=${VERSION_ID%%.*}
printf '%s\n' "[elrepo]" "name=ELRepo.org Community Enterprise Linux Repository - el$major" \
  "baseurl=$(vendor "elrepo.org/linux/elrepo/el$major/\$basearch/")" enabled=1 gpgcheck=1 \
  "gpgkey=$(vendor elrepo.org/RPM-GPG-KEY-v2-elrepo.org)" >/etc/yum.repos.d/elrepo.repo
sed -i '/^\[\(crb\|powertools\)\]/,/^$/s/^enabled=0/enabled=1/' /etc/yum.repos.d/rocky.repo
install_made_rpm elrepo-release 9 1.el9.elrepo
dnf -q -y install kmod-nvidia-580xx nvidia-x11-drv-580xx
modprobe nvidia
