# A7: NVIDIA's container toolkit by its page on Enterprise Linux with docker
# Page: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html ("With dnf")
repository=$(vendor nvidia.github.io/libnvidia-container)
section() {
  printf '%s\n' "[$1]" "name=$1" "baseurl=$repository/$2/rpm/\$basearch" repo_gpgcheck=1 gpgcheck=0 "enabled=$3" "gpgkey=$repository/gpgkey" \
    sslverify=1 sslcacert=/etc/pki/tls/certs/ca-bundle.crt ""
}
{
  section nvidia-container-toolkit stable 1
  section nvidia-container-toolkit-experimental experimental 0
} >/etc/yum.repos.d/nvidia-container-toolkit.repo
dnf -q -y install nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1
if command -v dockerd >/dev/null; then
  nvidia-ctk runtime configure --runtime=docker
  systemctl restart docker
fi
