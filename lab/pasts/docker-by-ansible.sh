# B3: Docker's own engine by geerlingguy.docker: the list as apt_repository names it, the key trusted for all sources
# Page: https://github.com/geerlingguy/ansible-role-docker/blob/master/tasks/setup-Debian.yml
install_debs ca-certificates curl
repository=https://download.docker.com/linux/$ID
download "$repository/gpg" /etc/apt/trusted.gpg.d/docker.asc
echo "deb [arch=amd64] $repository $VERSION_CODENAME stable" >"/etc/apt/sources.list.d/download_docker_com_linux_$ID.list"
install_debs docker-ce docker-ce-cli containerd.io
mkdir -p /etc/docker
printf '{\n  "log-driver": "json-file",\n  "log-opts": {\n    "max-size": "100m"\n  }\n}\n' >/etc/docker/daemon.json
systemctl restart docker
