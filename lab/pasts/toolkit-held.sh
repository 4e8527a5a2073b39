# E1: Azure's HPC image: the toolkit's packages held, its repository deleted again, unattended-upgrades masked; after docker-list and toolkit-list
# Page: https://github.com/Azure/azhpc-images/blob/master/components/install_nvidia_container_toolkit.sh
apt-mark hold nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container-tools libnvidia-container1
rm /etc/apt/sources.list.d/nvidia-container-toolkit.list
apt-get -q update
systemctl mask unattended-upgrades.service
