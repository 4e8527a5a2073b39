# E4: a guest with a vGPU or an Azure NV machine: NVIDIA's GRID driver and its licence daemon; after runfile-dkms
# Page: https://learn.microsoft.com/en-us/azure/virtual-machines/linux/n-series-driver-setup ("Install GRID drivers on NV or NVv3-series VMs")
mkdir -p /etc/nvidia
printf 'IgnoreSP=FALSE\nEnableUI=FALSE\n' >/etc/nvidia/gridd.conf
cp /etc/nvidia/gridd.conf /etc/nvidia/gridd.conf.template
printf '#!/bin/sh\nexec sleep infinity\n' >/usr/bin/nvidia-gridd
chmod 755 /usr/bin/nvidia-gridd
printf '[Unit]\nDescription=NVIDIA Grid Daemon\n[Service]\nExecStart=/usr/bin/nvidia-gridd\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/nvidia-gridd.service
systemctl daemon-reload
systemctl enable --now nvidia-gridd.service
