# C4: Debian's own driver by Debian's wiki
# Page: https://wiki.debian.org/NvidiaGraphicsDrivers
enable_components
install_debs "linux-headers-$(uname -r)" gcc make
# With its recommendations (nvidia-smi, libcuda1), as the page does.
apt-get -q -y install nvidia-driver
modprobe nvidia
