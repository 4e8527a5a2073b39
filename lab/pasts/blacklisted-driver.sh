# H7: a package for hybrid graphics blacklists the modules, and somebody loaded the driver by hand; after a driver
# Page: https://github.com/Askannz/optimus-manager/issues/507
files=$(mktemp -d)
mkdir -p "$files/usr/lib/modprobe.d"
printf 'blacklist %s\n' nouveau nvidia_drm nvidia_uvm nvidia_modeset nvidia >"$files/usr/lib/modprobe.d/optimus-manager.conf"
install_made_deb optimus-manager 1.4-5 "$files"
modprobe nvidia
