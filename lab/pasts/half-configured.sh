# J3: an interrupted upgrade: one package unpacked and not configured
# Page: https://www.debian.org/doc/manuals/debian-reference/ch02.en.html ("Rescue with the dpkg command")
install_made_deb past-half 1
made=$(mktemp -d)
mkdir "$made/DEBIAN"
chmod 755 "$made"
printf '%s\n' "Package: past-half" "Version: 2" "Architecture: amd64" "Maintainer: gpu-ready lab <lab@gpu-ready.invalid>" "Description: half a package" >"$made/DEBIAN/control"
dpkg-deb --build "$made" "$made.deb"
dpkg --unpack "$made.deb"
rm -r "$made" "$made.deb"
