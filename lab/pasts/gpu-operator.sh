# G1: a node of the GPU Operator: its driver container loaded the module, the host has no user space
# Page: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/overview.html; paths: https://github.com/NVIDIA/gpu-driver-container
enable_components
apt-get -q update
root=/var/lib/driver-container
mkdir -p "$root" /run/nvidia/driver /run/nvidia/validations /run/nvidia/toolkit /usr/local/nvidia/toolkit /var/run/cdi
cd "$root"
chmod 755 "$root"
apt-get -q download linux-modules-nvidia-580-server-open-generic "linux-modules-nvidia-580-server-open-$(uname -r)" libnvidia-compute-580-server nvidia-utils-580-server
for package in *.deb; do dpkg-deb -x "$package" "$root"; done
rm ./*.deb
for module in nvidia nvidia-modeset nvidia-uvm; do insmod "$(find "$root/lib/modules" -name "$module.ko")"; done
mount --rbind "$root" /run/nvidia/driver
touch /run/nvidia/validations/driver-ready /run/nvidia/validations/toolkit-ready /run/nvidia/validations/.driver-ctr-ready
echo $$ >/run/nvidia/nvidia-driver.pid
