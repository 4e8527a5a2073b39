# B4: Docker's own engine by Docker's page for Enterprise Linux: docker-ce.repo with its nine sections
# Page: https://docs.docker.com/engine/install/rhel/ (dnf config-manager --add-repo .../docker-ce.repo)
repository=$(vendor download.docker.com/linux/rhel)
for channel in stable test nightly; do
  enabled=0
  [ "$channel" != stable ] || enabled=1
  printf '%s\n' "[docker-ce-$channel]" "name=Docker CE $channel - \$basearch" "baseurl=$repository/\$releasever/\$basearch/$channel" \
    "enabled=$enabled" gpgcheck=1 "gpgkey=$repository/gpg" ""
  printf '%s\n' "[docker-ce-$channel-debuginfo]" "name=Docker CE $channel - Debuginfo \$basearch" \
    "baseurl=$repository/\$releasever/debug-\$basearch/$channel" enabled=0 gpgcheck=1 "gpgkey=$repository/gpg" ""
  printf '%s\n' "[docker-ce-$channel-source]" "name=Docker CE $channel - Sources" "baseurl=$repository/\$releasever/source/$channel" \
    enabled=0 gpgcheck=1 "gpgkey=$repository/gpg" ""
done >/etc/yum.repos.d/docker-ce.repo
dnf -q -y install docker-ce docker-ce-cli containerd.io docker-buildx-plugin docker-compose-plugin
systemctl enable --now docker
