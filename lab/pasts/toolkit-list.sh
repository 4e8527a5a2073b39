# A6: NVIDIA's container toolkit by its page on a host with docker; the source has the variable $(ARCH)
# Page: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html ("With apt")
install_debs ca-certificates curl gpg
key=$(mktemp -d)
download "$(vendor nvidia.github.io/libnvidia-container/gpgkey)" "$key/gpgkey"
gpg --dearmor --output /usr/share/keyrings/nvidia-container-toolkit-keyring.gpg "$key/gpgkey"
rm -r "$key"
repository=$(vendor nvidia.github.io/libnvidia-container)
signed="[signed-by=/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg]"
printf '%s\n' "deb $signed $repository/stable/deb/\$(ARCH) /" "#deb $signed $repository/experimental/deb/\$(ARCH) /" \
  >/etc/apt/sources.list.d/nvidia-container-toolkit.list
install_debs nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1
if command -v dockerd >/dev/null; then
  nvidia-ctk runtime configure --runtime=docker
  systemctl restart docker
fi
