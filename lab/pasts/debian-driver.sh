# C4: Debian's own driver by Debian's wiki
# Page: https://wiki.debian.org/NvidiaGraphicsDrivers
enable_components
install_debs "linux-headers-$(uname -r)" gcc make
install_debs nvidia-driver
modprobe nvidia
