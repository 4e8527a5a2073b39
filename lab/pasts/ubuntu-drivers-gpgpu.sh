# C1: `ubuntu-drivers install --gpgpu`, as cloud-init does with `drivers: nvidia`: no nvidia-smi
# Page: https://documentation.ubuntu.com/server/how-to/graphics/install-nvidia-drivers/; https://cloudinit.readthedocs.io/en/latest/reference/modules.html#mod-cc-ubuntu-drivers
enable_components
echo "linux-restricted-modules linux/nvidia/latelink boolean true" | debconf-set-selections
install_debs linux-modules-nvidia-580-server-open-generic nvidia-headless-no-dkms-580-server-open
modprobe nvidia
