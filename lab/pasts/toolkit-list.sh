# A6: NVIDIA's container toolkit by its page on a host with docker; the source has the variable $(ARCH)
# Page: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html ("With apt")
install_debs ca-certificates curl gpg
fetch_keyring /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg https://nvidia.github.io/libnvidia-container/gpgkey
download https://nvidia.github.io/libnvidia-container/stable/deb/nvidia-container-toolkit.list /root/nvidia-container-toolkit.list
sed 's#deb https://#deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg] https://#g' /root/nvidia-container-toolkit.list \
  >/etc/apt/sources.list.d/nvidia-container-toolkit.list
install_debs nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1
if command -v dockerd >/dev/null; then
  nvidia-ctk runtime configure --runtime=docker
  systemctl restart docker
fi
