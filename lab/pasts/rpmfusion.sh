# D1: RPM Fusion's driver on Enterprise Linux
# Page: https://rpmfusion.org/Howto/NVIDIA
printf '%s\n' "[rpmfusion-nonfree-updates]" "name=RPM Fusion for EL 9 - Nonfree - Updates" \
  "baseurl=https://download1.rpmfusion.org/nonfree/el/updates/9/\$basearch/" enabled=1 gpgcheck=1 \
  "gpgkey=https://download1.rpmfusion.org/nonfree/el/RPM-GPG-KEY-rpmfusion-nonfree-el-9" >/etc/yum.repos.d/rpmfusion-nonfree-updates.repo
install_made_rpm rpmfusion-nonfree-release 9 1
dnf -q -y install akmod-nvidia xorg-x11-drv-nvidia-cuda
modprobe nvidia
