# H1: GPUDirect Storage beside the driver: nvidia-fs of DKMS, its tools; after a driver
# Page: https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/ ("Installing GPUDirect Storage")
install_debs dkms gcc make "linux-headers-$(uname -r)"
files=$(mktemp -d)
source=$files/usr/src/nvidia-fs-2.27.3
mkdir -p "$source"
printf '#include <linux/module.h>\nMODULE_LICENSE("GPL v2");\nMODULE_VERSION("2.27.3");\n' >"$source/nvidia-fs.c"
echo "obj-m := nvidia-fs.o" >"$source/Makefile"
printf '%s\n' 'PACKAGE_NAME="nvidia-fs"' 'PACKAGE_VERSION="2.27.3"' 'AUTOINSTALL="yes"' \
  'MAKE[0]="make -C ${kernel_source_dir} M=${dkms_tree}/${PACKAGE_NAME}/${PACKAGE_VERSION}/build modules"' 'CLEAN="true"' \
  'BUILT_MODULE_NAME[0]="nvidia-fs"' 'DEST_MODULE_LOCATION[0]="/updates/dkms"' >"$source/dkms.conf"
install_made_deb nvidia-fs-dkms 2.27.3-1 "$files" "Depends: dkms"
dkms install nvidia-fs/2.27.3
install_made_deb nvidia-fs 2.27.3-1 "" "Depends: nvidia-fs-dkms"
install_made_deb gds-tools-13-0 1.15.1.6-1
install_made_deb nvidia-gds-13-0 13.0.2-1 "" "Depends: gds-tools-13-0, nvidia-fs"
install_made_deb nvidia-gds 13.0.2-1 "" "Depends: nvidia-gds-13-0"
