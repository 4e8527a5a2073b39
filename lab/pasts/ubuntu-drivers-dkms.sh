# C3: `ubuntu-drivers install --include-dkms`: the driver for desktops with modules that the host builds
# Page: https://documentation.ubuntu.com/server/how-to/graphics/install-nvidia-drivers/
enable_components
install_debs "linux-headers-$(uname -r)" gcc make
install_debs nvidia-dkms-580-open nvidia-driver-580-open
modprobe nvidia
