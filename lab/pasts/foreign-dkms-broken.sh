# J4: another project's DKMS module, added while the headers of the kernel are missing; it does not build for this kernel
# Page: https://github.com/DisplayLink/evdi/issues/346
install_debs dkms gcc make
mkdir -p /usr/src/evdi-1.9.1
printf '%s\n' 'PACKAGE_NAME="evdi"' 'PACKAGE_VERSION="1.9.1"' 'BUILT_MODULE_NAME[0]="evdi"' 'DEST_MODULE_LOCATION[0]="/updates"' \
  'AUTOINSTALL="yes"' "MAKE[0]=\"make -C /lib/modules/\${kernelver}/build M=\${dkms_tree}/evdi/1.9.1/build modules\"" \
  "CLEAN=\"true\"" >/usr/src/evdi-1.9.1/dkms.conf
echo 'obj-m := evdi.o' >/usr/src/evdi-1.9.1/Makefile
printf '%s\n' '#include <linux/module.h>' 'static int __init start(void) { return drm_dev_of_an_older_kernel(); }' \
  'module_init(start);' 'MODULE_LICENSE("GPL");' >/usr/src/evdi-1.9.1/evdi.c
dkms add -m evdi -v 1.9.1
