# F8: nvidia-docker 1.0 as its wiki says: a package, a plugin of docker, a volume with the driver's files; after docker-list
# Page: https://github.com/NVIDIA/nvidia-docker/wiki/Installation-(version-1.0)
install_debs ca-certificates curl gpg
made=$(mktemp -d)
download "https://nvidia.github.io/libnvidia-container/stable/deb/amd64/nvidia-docker_1.0.1-1_amd64.deb" "$made/nvidia-docker.deb"
dpkg --install "$made/nvidia-docker.deb"
rm -r "$made"
mkdir -p /etc/docker/plugins /var/lib/nvidia-docker/volumes/nvidia_driver/367.57/bin
echo unix:///run/docker/plugins/nvidia-docker.sock >/etc/docker/plugins/nvidia-docker.spec
