# Functions for the scripts of this directory. The lab runs them in front of each, as root on the host, with `set -eu`.
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
. /etc/os-release

# Download the URL $1 to the file $2, as `curl -fsSL URL -o FILE` of the vendors' pages.
download() { curl -fsSL --retry 2 --max-time 120 "$1" -o "$2"; }

# The keyring $1 of the key at the URL $2, as `curl -fsSL URL | gpg --dearmor -o FILE` of the vendors' pages.
fetch_keyring() {
  key=$(mktemp)
  download "$2" "$key"
  gpg --dearmor --yes --output "$1" "$key"
  rm "$key"
}

# Debian's contrib and non-free, Ubuntu's restricted and multiverse, as cloud images of Ubuntu have them.
enable_components() {
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list.d/ubuntu.sources; do
    [ ! -e "$file" ] || sed -i -E \
      -e 's/^((deb|Components:)( .*)?) main$/\1 main contrib non-free non-free-firmware/' \
      -e 's/^Components: main universe$/Components: main restricted universe multiverse/' "$file"
  done
}

install_debs() { apt-get -q update && apt-get -q -y --no-install-recommends install "$@"; }

# Install a package NAME VERSION that has the files below the directory $3 (without it: none). Further arguments are
# lines of its control file.
install_made_deb() {
  made=$(mktemp -d)
  mkdir "$made/DEBIAN"
  if [ -n "${3-}" ]; then cp -a "$3/." "$made/"; fi
  {
    printf '%s\n' "Package: $1" "Version: $2" "Architecture: amd64" "Maintainer: gpu-ready lab <lab@gpu-ready.invalid>"
    shift "$(($# < 3 ? $# : 3))"
    for field in "$@"; do printf '%s\n' "$field"; done
    printf '%s\n' "Description: stand-in of the gpu-ready lab for the package of this name"
  } >"$made/DEBIAN/control"
  (cd "$made" && find etc -type f -printf '/%p\n' 2>/dev/null) >"$made/DEBIAN/conffiles" || true
  chmod -R u+rwX,go+rX "$made"
  dpkg-deb --root-owner-group --build "$made" "$made.deb" >/dev/null
  dpkg --install "$made.deb"
  rm -r "$made" "$made.deb"
}

# Install an RPM NAME VERSION RELEASE that has the files below the directory $4 (without it: none).
install_made_rpm() {
  made=$(mktemp -d)
  mkdir -p "$made/root"
  if [ -n "${4-}" ]; then cp -a "$4/." "$made/root/"; fi
  {
    printf '%s\n' "Name: $1" "Version: $2" "Release: $3" "Summary: stand-in of the gpu-ready lab" "License: none" \
      "AutoReqProv: no" "%description" "Stand-in of the gpu-ready lab for the package of this name." "%install" \
      "mkdir -p %{buildroot} && cp -a $made/root/. %{buildroot}/" "%files"
    (cd "$made/root" && find . -not -type d -printf '/%P\n')
  } >"$made/package.spec"
  rpmbuild -bb --quiet --define "_topdir $made" --define "_rpmdir $made" "$made/package.spec"
  rpm --install "$made"/*/*.rpm
  rm -r "$made"
}
