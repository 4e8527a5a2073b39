# A9: the driver by NVIDIA's .run installer with DKMS
# Page: https://download.nvidia.com/XFree86/Linux-x86_64/580.95.05/README/installdriver.html
install_debs ca-certificates curl dkms gcc make "linux-headers-$(uname -r)"
download "https://us.download.nvidia.com/tesla/580.95.05/NVIDIA-Linux-x86_64-580.95.05.run" /root/NVIDIA-Linux-x86_64-580.95.05.run
sh /root/NVIDIA-Linux-x86_64-580.95.05.run --silent --dkms --kernel-module-type=open
modprobe nvidia
