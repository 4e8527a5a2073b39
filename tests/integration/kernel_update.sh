#!/bin/sh
# Publish a newer kernel in a repository on this host, as Ubuntu's archive does: image, headers, and the packages that
# follow them. Then install all updates, without a question, as unattended-upgrades does.
set -eu
old=$(uname -r)
base=$(echo "$old" | sed -E 's/-([0-9]+)-.*/-\1/')
new=$(echo "$old" | sed -E 's/-([0-9]+)-/-999-/')
version=$(echo "$new" | sed -E 's/-[a-z].*//').999
repository=/srv/kernel-update
mkdir -p "$repository"

# Package $1, dependencies $2, its files below $3; its script runs the program $4, then the kernel's hooks in directory $5.
package() {
  mkdir -p "$3/DEBIAN"
  printf '%s\n' "Package: $1" "Version: $version" "Architecture: amd64" "Maintainer: Lab <lab@example>" "Depends: $2" \
    "Description: stand-in" | grep -v ': $' >"$3/DEBIAN/control"
  if [ -n "${4-}" ]; then
    printf '#!/bin/sh\nset -e\n%s %s\nrun-parts --arg=%s --arg=/boot/vmlinuz-%s /etc/kernel/%s\n' \
      "$4" "$new" "$new" "$new" "$5" >"$3/DEBIAN/postinst"
    chmod 755 "$3/DEBIAN/postinst"
  fi
  dpkg-deb --root-owner-group -b "$3" "$repository/$1.deb"
}

image=$(mktemp -d)
mkdir -p "$image/boot" "$image/lib/modules/$new/kernel"
cp "/boot/vmlinuz-$old" "$image/boot/vmlinuz-$new"
cp "/lib/modules/$old/modules.builtin" "/lib/modules/$old/modules.order" "$image/lib/modules/$new/"
package "linux-image-$new" "" "$image" depmod postinst.d
headers=$(mktemp -d)
mkdir -p "$headers/usr/src" "$headers/lib/modules/$new"
cp -a "/usr/src/linux-headers-$old" "$headers/usr/src/linux-headers-$new"
sed -i "s/$old/$new/g" "$headers/usr/src/linux-headers-$new/Makefile"
ln -s "/usr/src/linux-headers-$new" "$headers/lib/modules/$new/build"
package "linux-headers-$new" "" "$headers" : header_postinst.d
package linux-image-generic "linux-image-$new" "$(mktemp -d)"
package linux-headers-generic "linux-headers-$new" "$(mktemp -d)"

cd "$repository"
for file in *.deb; do
  dpkg-deb -f "$file"
  printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$file" "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -d' ' -f1)"
done >Packages
echo "deb [trusted=yes] file:$repository ./" >/etc/apt/sources.list.d/kernel-update.list
apt-get -q update
DEBIAN_FRONTEND=noninteractive apt-get -q -y --with-new-pkgs upgrade
echo "installed $base to $new"
