# B4: Docker's own engine by Docker's page for Enterprise Linux: docker-ce.repo with its nine sections
# Page: https://docs.docker.com/engine/install/rhel/ (dnf config-manager --add-repo .../docker-ce.repo)
download https://download.docker.com/linux/rhel/docker-ce.repo /etc/yum.repos.d/docker-ce.repo
dnf -q -y install docker-ce docker-ce-cli containerd.io docker-buildx-plugin docker-compose-plugin
systemctl enable --now docker
