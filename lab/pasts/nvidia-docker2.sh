# F7: nvidia-docker2 by the page of 2018 to 2023: its list leads to three repositories, the key is trusted for all; after docker-list
# Page: https://github.com/NVIDIA/nvidia-docker/blob/v2.13.0/README.md; its end: https://github.com/NVIDIA/nvidia-container-toolkit/issues/89
install_debs ca-certificates curl gpg
fetch_keyring /etc/apt/trusted.gpg.d/nvidia-docker.gpg "https://nvidia.github.io/libnvidia-container/gpgkey"
echo "deb https://nvidia.github.io/libnvidia-container/stable/deb/amd64 /" >/etc/apt/sources.list.d/nvidia-docker.list
install_debs nvidia-docker2
for name in libnvidia-container/stable nvidia-container-runtime/stable nvidia-docker; do
  echo "deb https://nvidia.github.io/$name/ubuntu18.04/\$(ARCH) /"
done >/etc/apt/sources.list.d/nvidia-docker.list
systemctl restart docker
