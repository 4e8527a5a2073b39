# B1: Docker's own engine by Docker's page of today: docker.sources in deb822 form, the key as docker.asc
# Page: https://docs.docker.com/engine/install/ubuntu/ ("Install using the apt repository")
install_debs ca-certificates curl
install -m 0755 -d /etc/apt/keyrings
repository=https://download.docker.com/linux/$ID
download "$repository/gpg" /etc/apt/keyrings/docker.asc
chmod a+r /etc/apt/keyrings/docker.asc
printf '%s\n' "Types: deb" "URIs: $repository" "Suites: $VERSION_CODENAME" "Components: stable" \
  "Architectures: $(dpkg --print-architecture)" "Signed-By: /etc/apt/keyrings/docker.asc" >/etc/apt/sources.list.d/docker.sources
install_debs docker-ce docker-ce-cli containerd.io docker-buildx-plugin docker-compose-plugin
