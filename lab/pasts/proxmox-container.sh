# H6: a container of Proxmox: the module is that of the container's host, the user space that of a .run installer without modules
# Page: https://pve.proxmox.com/wiki/Linux_Container; https://theorangeone.net/posts/lxc-nvidia-gpu-passthrough/
install_debs ca-certificates curl gcc make "linux-headers-$(uname -r)"
download "$(vendor us.download.nvidia.com/tesla/580.95.05/NVIDIA-Linux-x86_64-580.95.05.run)" /root/NVIDIA-Linux-x86_64-580.95.05.run
sh /root/NVIDIA-Linux-x86_64-580.95.05.run --silent --kernel-module-type=open
modprobe nvidia
modprobe nvidia-uvm
sh /root/NVIDIA-Linux-x86_64-580.95.05.run --uninstall --silent --skip-module-unload
sh /root/NVIDIA-Linux-x86_64-580.95.05.run --silent --no-kernel-modules --skip-module-unload
apt-get -q -y purge "linux-headers-$(uname -r)"
echo lxc >/run/systemd/container
