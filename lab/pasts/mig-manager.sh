# H2: MIG by NVIDIA's mig-manager, which applies a configuration at boot; after a driver
# Page: https://github.com/NVIDIA/mig-parted/tree/main/deployments/systemd
files=$(mktemp -d)
mkdir -p "$files/etc/nvidia-mig-manager" "$files/usr/lib/systemd/system" "$files/usr/bin"
printf 'version: v1\nmig-configs:\n  all-1g.5gb:\n    - devices: all\n      mig-enabled: true\n      mig-devices:\n        "1g.5gb": 7\n' \
  >"$files/etc/nvidia-mig-manager/config.yaml"
printf 'version: v1\nhooks: {}\n' >"$files/etc/nvidia-mig-manager/hooks.yaml"
printf '#!/bin/sh\nexit 0\n' >"$files/usr/bin/nvidia-mig-parted"
chmod 755 "$files/usr/bin/nvidia-mig-parted"
printf '[Unit]\nDescription=Configure MIG on NVIDIA GPUs\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/nvidia-mig-parted apply\n[Install]\nWantedBy=multi-user.target\n' \
  >"$files/usr/lib/systemd/system/nvidia-mig-manager.service"
install_made_deb nvidia-mig-manager 0.12.1-1 "$files"
mkdir -p /etc/systemd/system/nvidia-mig-manager.service.d
printf '[Service]\nEnvironment="MIG_PARTED_SELECTED_CONFIG=all-1g.5gb"\n' >/etc/systemd/system/nvidia-mig-manager.service.d/override.conf
systemctl daemon-reload
systemctl enable --now nvidia-mig-manager.service
