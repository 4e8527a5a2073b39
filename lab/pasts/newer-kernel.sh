# J3: an update installed a newer kernel with its headers, and the host waits for its reboot
# Page: https://wiki.debian.org/UnattendedUpgrades ("reboot required")
release=$(uname -r)
newer=$(echo "$release" | sed -E 's/-([0-9]+)-/-999-/')
[ "$newer" != "$release" ]
install_debs "linux-headers-$release"
files=$(mktemp -d)
mkdir -p "$files/boot" "$files/lib/modules/$newer/kernel"
cp "/boot/vmlinuz-$release" "$files/boot/vmlinuz-$newer"
cp "/boot/config-$release" "$files/boot/config-$newer"
cp "/lib/modules/$release/modules.builtin" "$files/lib/modules/$newer/"
touch "$files/lib/modules/$newer/modules.order"
install_made_deb "linux-image-$newer" "${newer%-*}" "$files"
headers=$(mktemp -d)
mkdir -p "$headers/usr/src" "$headers/lib/modules/$newer"
cp -aL "/usr/src/linux-headers-$release" "$headers/usr/src/linux-headers-$newer"
sed -i "s/$release/$newer/g" "$headers/usr/src/linux-headers-$newer/Makefile"
ln -s "/usr/src/linux-headers-$newer" "$headers/lib/modules/$newer/build"
install_made_deb "linux-headers-$newer" "${newer%-*}" "$headers"
depmod "$newer"
ln -sf "boot/vmlinuz-$newer" /vmlinuz
echo "*** System restart required ***" >/run/reboot-required
echo "linux-image-$newer" >/run/reboot-required.pkgs
