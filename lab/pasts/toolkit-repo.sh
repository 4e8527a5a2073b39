# A7: NVIDIA's container toolkit by its page on Enterprise Linux with docker
# Page: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html ("With dnf")
download https://nvidia.github.io/libnvidia-container/stable/rpm/nvidia-container-toolkit.repo /etc/yum.repos.d/nvidia-container-toolkit.repo
dnf -q -y install nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1
if command -v dockerd >/dev/null; then
  nvidia-ctk runtime configure --runtime=docker
  systemctl restart docker
fi
