# J3: an upgrade installed a newer kernel, and the host waits for its reboot
# Page: https://wiki.debian.org/UnattendedUpgrades ("reboot required")
release=$(uname -r)
newer=$(echo "$release" | sed -E 's/-([0-9]+)-/-999-/')
[ "$newer" != "$release" ]
files=$(mktemp -d)
mkdir -p "$files/boot" "$files/lib/modules/$newer/kernel"
cp "/boot/vmlinuz-$release" "$files/boot/vmlinuz-$newer"
cp "/boot/config-$release" "$files/boot/config-$newer"
cp "/lib/modules/$release/modules.builtin" "$files/lib/modules/$newer/"
touch "$files/lib/modules/$newer/modules.order"
install_made_deb "linux-image-$newer" "${newer%-*}" "$files"
depmod "$newer"
ln -sf "boot/vmlinuz-$newer" /vmlinuz
echo "*** System restart required ***" >/run/reboot-required
echo "linux-image-$newer" >/run/reboot-required.pkgs
