# A2: the CUDA repository by the old page and by the new one: apt reads no source any more; after cuda-keyring
# Page: https://forums.developer.nvidia.com/t/notice-cuda-linux-repository-key-rotation/212772 ("Conflicting values set for option Signed-By")
install_debs gpg
distro=$ID$(echo "$VERSION_ID" | tr -d .)
repository=https://developer.download.nvidia.com/compute/cuda/repos/$distro/x86_64
fetch_keyring /etc/apt/trusted.gpg.d/cuda.gpg "$repository/3bf863cc.pub"
echo "deb [signed-by=/etc/apt/trusted.gpg.d/cuda.gpg] $repository/ /" >/etc/apt/sources.list.d/cuda.list
