# A1: NVIDIA's CUDA network repository, by its package cuda-keyring, without a driver yet
# Page: https://docs.nvidia.com/cuda/cuda-installation-guide-linux/ (Ubuntu and Debian: "Network Repository Installation")
#   wget https://developer.download.nvidia.com/compute/cuda/repos/<distro>/x86_64/cuda-keyring_1.1-1_all.deb
#   dpkg -i cuda-keyring_1.1-1_all.deb
install_debs ca-certificates curl gpg
distro=$ID$(echo "$VERSION_ID" | tr -d .)
repository=$(vendor "developer.download.nvidia.com/compute/cuda/repos/$distro/x86_64")
case $distro in debian13) key=8793F200.pub ;; ubuntu2604) key=60DF8A40.pub ;; *) key=3bf863cc.pub ;; esac
files=$(mktemp -d)
mkdir -p "$files/usr/share/keyrings" "$files/etc/apt/sources.list.d" "$files/etc/apt/preferences.d"
download "$repository/$key" "$files/key"
gpg --dearmor --output "$files/usr/share/keyrings/cuda-archive-keyring.gpg" "$files/key"
rm "$files/key"
echo "deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] $repository/ /" \
  >"$files/etc/apt/sources.list.d/cuda-$distro-x86_64.list"
cat >"$files/etc/apt/preferences.d/cuda-repository-pin-600" <<'END'
Package: nsight-compute
Pin: origin *ubuntu.com*
Pin-Priority: -1

Package: nsight-systems
Pin: origin *ubuntu.com*
Pin-Priority: -1

Package: *
Pin: release l=NVIDIA CUDA
Pin-Priority: 600
END
install_made_deb cuda-keyring 1.1-1 "$files" "Section: multiverse/utils"
apt-get -q update
