# A8: the driver by NVIDIA's .run installer, without DKMS: a module for the running kernel only
# Page: https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/installdriver.html
if command -v apt-get >/dev/null; then install_debs ca-certificates curl gcc make "linux-headers-$(uname -r)"; else dnf -q -y install "kernel-devel-$(uname -r)" gcc make; fi
download "https://us.download.nvidia.com/tesla/580.95.05/NVIDIA-Linux-x86_64-580.95.05.run" /root/NVIDIA-Linux-x86_64-580.95.05.run
sh /root/NVIDIA-Linux-x86_64-580.95.05.run --silent --kernel-module-type=open
modprobe nvidia
