# A2: NVIDIA's CUDA repository by its page until 2022: a list of add-apt-repository without Signed-By, the key trusted for all
# Page: https://developer.nvidia.com/blog/updating-the-cuda-linux-gpg-repository-key/ (what it repairs)
install_debs ca-certificates curl gpg
distro=$ID$(echo "$VERSION_ID" | tr -d .)
repository=https://developer.download.nvidia.com/compute/cuda/repos/$distro/x86_64
fetch_keyring /etc/apt/trusted.gpg.d/cuda.gpg "$repository/3bf863cc.pub"
echo "deb $repository/ /" >"/etc/apt/sources.list.d/archive_uri-https_developer_download_nvidia_com_compute_cuda_repos_${distro}_x86_64_-$VERSION_CODENAME.list"
printf 'Package: *\nPin: release l=NVIDIA CUDA\nPin-Priority: 600\n' >/etc/apt/preferences.d/cuda-repository-pin-600
apt-get -q update
