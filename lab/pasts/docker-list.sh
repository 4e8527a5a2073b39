# B2: Docker's own engine by Docker's page as it was until 2025: a one-line source, the key as docker.asc
# Page: https://docs.docker.com/engine/install/debian/ and .../ubuntu/ ("Install using the apt repository")
install_debs ca-certificates curl
install -m 0755 -d /etc/apt/keyrings
repository=https://download.docker.com/linux/$ID
download "$repository/gpg" /etc/apt/keyrings/docker.asc
chmod a+r /etc/apt/keyrings/docker.asc
echo "deb [arch=$(dpkg --print-architecture) signed-by=/etc/apt/keyrings/docker.asc] $repository $VERSION_CODENAME stable" \
  >/etc/apt/sources.list.d/docker.list
install_debs docker-ce docker-ce-cli containerd.io docker-buildx-plugin docker-compose-plugin
