# H6: a container of Proxmox: the module is that of the container's host, the user space that of a .run installer without modules
# Page: https://pve.proxmox.com/wiki/Linux_Container; https://theorangeone.net/posts/lxc-nvidia-gpu-passthrough/
install_debs ca-certificates curl gcc make "linux-headers-$(uname -r)"
installer=/root/NVIDIA-Linux-x86_64-580.95.05.run
download https://us.download.nvidia.com/tesla/580.95.05/NVIDIA-Linux-x86_64-580.95.05.run "$installer"
# The container's host: its module is loaded, and none of its files is in the container.
sh "$installer" --silent --kernel-module-type=open
modules=$(mktemp -d)
for module in nvidia nvidia-modeset nvidia-uvm; do cp "$(modinfo --field filename "$module")" "$modules/"; done
sh "$installer" --uninstall --silent
apt-get -q -y purge "linux-headers-$(uname -r)"
for module in nvidia nvidia-modeset nvidia-uvm; do insmod "$modules/$module.ko"; done
rm -r "$modules"
# The container.
sh "$installer" --silent --no-kernel-modules --skip-module-unload
echo lxc >/run/systemd/container
