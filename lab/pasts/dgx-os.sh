# E13: DGX OS 7: NVIDIA's sources, settings packages, driver and docker-ce out of NVIDIA's own repository
# Page: https://docs.nvidia.com/dgx/dgx-os-7-user-guide/
install_debs ca-certificates curl gpg
enable_components
repository=https://repo.download.nvidia.com/baseos/ubuntu/noble/x86_64
cuda=https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64
fetch_keyring /usr/share/keyrings/dgx_debian_prod.gpg "$repository/dgx_debian_prod.pub"
fetch_keyring /usr/share/keyrings/cuda_debian_prod.gpg "$cuda/3bf863cc.pub"
printf '%s\n' "Types: deb" "URIs: $repository/" "Suites: noble" "Components: common dgx" "Architectures: amd64" \
  "Signed-By: /usr/share/keyrings/dgx_debian_prod.gpg" >/etc/apt/sources.list.d/dgx.sources
printf '%s\n' "Types: deb" "URIs: $cuda/" "Suites: /" "Architectures: amd64" \
  "Signed-By: /usr/share/keyrings/cuda_debian_prod.gpg" >/etc/apt/sources.list.d/cuda-compute-repo.sources
printf 'Package: *\nPin: release l=DGX\nPin-Priority: 600\n' >/etc/apt/preferences.d/dgx
printf '%s\n' 'DGX_NAME="DGX Server"' 'DGX_PRETTY_NAME="NVIDIA DGX Server"' 'DGX_SWBUILD_DATE="2025-09-03-16-12-14"' \
  'DGX_SWBUILD_VERSION="7.2.3"' 'DGX_COMMIT_ID="f6a5f1f"' 'DGX_PLATFORM="DGX Server for DGX A100"' 'DGX_SERIAL_NUMBER="1570000000000"' \
  'DGX_OTA_VERSION="7.3.1"' 'DGX_OTA_DATE="Mon Nov 10 10:00:00 UTC 2025"' >/etc/dgx-release
install_debs dgx-release dgx-repo nvidia-system-core nvidia-system-utils nvidia-system-extra nvidia-acs-disable nvidia-peermem-loader \
  nvidia-fs-loader nvidia-mig-manager nv-persistence-mode
install_debs linux-modules-nvidia-580-open-generic nvidia-driver-580-open=580.178.04-0ubuntu0.24.04.1 \
  libnvidia-gl-580=580.178.04-0ubuntu0.24.04.1 libnvidia-compute-580=580.178.04-0ubuntu0.24.04.1 nvidia-compute-utils-580=580.178.04-0ubuntu0.24.04.1 \
  nvidia-utils-580=580.178.04-0ubuntu0.24.04.1 libnvidia-cfg1-580=580.178.04-0ubuntu0.24.04.1 nvidia-kernel-common-580=580.178.04-0ubuntu0.24.04.1 \
  nvidia-kernel-source-580-open=580.178.04-0ubuntu0.24.04.1
install_debs docker-ce docker-ce-cli containerd.io nvidia-container-toolkit
nvidia-ctk runtime configure --runtime=docker
systemctl restart docker
modprobe nvidia
