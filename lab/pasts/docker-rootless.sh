# I2: rootless docker for a user, its GPU support by the toolkit's guide; after docker-list and toolkit-list
# Page: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html ("Rootless mode")
install_debs docker-ce-rootless-extras uidmap
systemctl disable --now docker.service docker.socket
id ci >/dev/null 2>&1 || useradd --create-home --shell /bin/bash ci
mkdir -p /home/ci/.config/docker /home/ci/.config/systemd/user
printf '{\n    "runtimes": {\n        "nvidia": {\n            "args": [],\n            "path": "nvidia-container-runtime"\n        }\n    }\n}\n' \
  >/home/ci/.config/docker/daemon.json
printf '[Unit]\nDescription=Docker Application Container Engine (Rootless)\n\n[Service]\nExecStart=/usr/bin/dockerd-rootless.sh\n' \
  >/home/ci/.config/systemd/user/docker.service
chown -R ci:ci /home/ci/.config
sed -i 's/^#\?no-cgroups = .*/no-cgroups = true/' /etc/nvidia-container-runtime/config.toml
