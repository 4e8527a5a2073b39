# C2: `ubuntu-drivers install`: the driver for desktops with modules that Ubuntu built and signed
# Page: https://documentation.ubuntu.com/server/how-to/graphics/install-nvidia-drivers/
enable_components
install_debs linux-modules-nvidia-580-open-generic nvidia-driver-580-open
modprobe nvidia
