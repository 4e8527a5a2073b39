# B1: Docker's repository by Docker's page, and the engine not installed yet
# Page: https://docs.docker.com/engine/install/debian/ (its first step)
install_debs ca-certificates curl
install -m 0755 -d /etc/apt/keyrings
repository=https://download.docker.com/linux/$ID
download "$repository/gpg" /etc/apt/keyrings/docker.asc
echo "deb [arch=amd64 signed-by=/etc/apt/keyrings/docker.asc] $repository $VERSION_CODENAME stable" >/etc/apt/sources.list.d/docker.list
apt-get -q update
