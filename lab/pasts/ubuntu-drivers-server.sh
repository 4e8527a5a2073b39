# C1: `ubuntu-drivers install --gpgpu nvidia:580-server` and the utilities, as Ubuntu's guide for servers ends
# Page: https://documentation.ubuntu.com/server/how-to/graphics/install-nvidia-drivers/
enable_components
install_debs linux-modules-nvidia-580-server-generic nvidia-headless-no-dkms-580-server nvidia-utils-580-server
modprobe nvidia
