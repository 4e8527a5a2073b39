# Functions for the commands of index.yaml; record.py runs both in a root file system of Debian.

# package NAME VERSION [FIELD...]: build a Debian package with the files of tree/ in the current directory's archive/
package() {
    name=$1 version=$2; shift 2
    mkdir -p archive build/DEBIAN
    [ ! -d tree ] || cp -a tree/. build
    { echo "Package: $name"; echo "Version: $version"; echo Architecture: amd64; echo "Maintainer: nobody <nobody@example.com>"
      echo "Description: sample"; for field; do echo "$field"; done; } >build/DEBIAN/control
    [ ! -f postinst ] || install -m 755 postinst build/DEBIAN
    dpkg-deb -b build "archive/${name}_${version}_amd64.deb"
    rm -rf build tree postinst
}

# index: make the archive a repository, serve it on port 80 of repo.example, and make it apt's only source
index() {
    (cd archive && apt-ftparchive packages . >Packages && apt-ftparchive "$@" release . >Release.new && mv Release.new Release)
    serve
    rm -rf /etc/apt/sources.list.d/* /var/lib/apt/lists/*
    echo "deb [trusted=yes] http://repo.example/ ./" >/etc/apt/sources.list
}

# serve: the archive at http://repo.example/
serve() {
    echo "127.0.0.1 localhost repo.example node1" >/etc/hosts
    busybox httpd -p 80 -h /tmp/archive
}

# rpm_package NAME VERSION [SPEC LINE...]: build a package that has the file named by $file, if any
rpm_package() {
    name=$1 version=$2; shift 2
    mkdir -p archive
    { echo "Name: $name"; echo "Version: $version"; echo "Release: 1.el9"; echo "Summary: sample"; echo "License: none"
      echo "BuildArch: noarch"; for line; do echo "$line"; done; echo "%description"; echo "sample"
      echo "%install"; [ -z "$file" ] || echo "mkdir -p %{buildroot}${file%/*} && head -c ${bytes:-5} /dev/zero >%{buildroot}$file"
      [ -z "$post" ] || { echo "%post"; echo "$post"; }
      echo "%files"; [ -z "$file" ] || echo "$file"; } >package.spec
    rpmbuild -bb --define "_rpmdir /tmp/archive" --define "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" package.spec
}

# repository [LINE...]: make the archive a repository, serve it, and make it dnf's only one, with these lines more
repository() {
    createrepo_c -q archive
    serve
    mkdir -p /etc/yum.repos.d
    { echo "[cuda-rhel9-x86_64]"; echo "name=cuda-rhel9-x86_64"; echo "baseurl=http://repo.example/"; echo "enabled=1"
      for line; do echo "$line"; done; } >/etc/yum.repos.d/cuda-rhel9.repo
}

# guest FUNCTIONS COMMAND: run a command in a QEMU guest with this root file system, Debian's kernel, NVIDIA's modules and
# PCI functions "DEVICE:BOOT0 ..." of the lab's module (lab/gpu_ready_lab/data/vm/pci, compiled in /usr/src/pci)
guest() {
    kernel=$(basename /boot/vmlinuz-*); kernel=${kernel#vmlinuz-}
    ids= boots=
    for function in $1; do ids=$ids,0x${function%:*}; boots=$boots,0x${function#*:}; done
    mkdir -p initrd/bin
    cp /bin/busybox initrd/bin
    modules="virtio_pci 9pnet_virtio 9p overlay"
    for file in $(modprobe -S "$kernel" -a --show-depends $modules | awk '/^insmod/ && !seen[$2]++ { print $2 }'); do cp "$file" initrd; echo "${file##*/}" >>initrd/order; done
    { echo '#!/bin/busybox sh'; echo 'b=/bin/busybox; $b mkdir -p /proc /dev /r; $b mount -t proc proc /proc; $b mount -t devtmpfs dev /dev'
      echo 'for m in $($b cat /order); do $b insmod /$m; done; $b mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 root /r'
      echo '$b mount -t proc proc /r/proc; $b mount -t sysfs sys /r/sys; $b mount -t devtmpfs dev /r/dev; $b mount -t tmpfs tmp /r/run'
      echo "[ -z '$ids' ] || \$b insmod /r/usr/src/pci/gpu_ready_pci.ko ids=${ids#,} boot0=${boots#,} base=0x20000000"
      echo "\$b chroot /r /bin/sh /tmp/guest-command >/dev/ttyS1 2>&1; \$b poweroff -f"; } >initrd/init
    chmod +x initrd/init
    printf 'cd /tmp\nexport PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8\nstty -F /dev/ttyS1 raw\n%s\n' "$2" >guest-command
    (cd initrd && find . | cpio -o -H newc --quiet | gzip -1) >initrd.gz
    : >answer
    timeout 400 qemu-system-x86_64 -machine q35 -cpu max -smp 2 -m 1100 -kernel /boot/vmlinuz-* -initrd initrd.gz -nographic -no-reboot \
        -append "console=ttyS0 loglevel=3 memmap=512M\$0x20000000 $kernel_options" -serial file:console -serial file:answer \
        -virtfs local,path=/,mount_tag=root,security_model=none,multidevs=remap >qemu.out 2>&1
    cat answer
}

# engine [OPTION...]: start dockerd with one image, example/cuda:12 (busybox)
engine() {
    mount -t sysfs sysfs /sys
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mkdir -p image/bin
    cp /bin/busybox image/bin
    for program in sh ls cat true sleep; do ln -s busybox image/bin/$program; done
    dockerd --data-root /tmp/docker --exec-root /tmp/docker-run --storage-driver vfs --iptables=false --bridge=none "$@" &
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do docker version && break; sleep 1; done
    tar -C image -c . | docker import - example/cuda:12
}

# installer: a directory as NVIDIA's installers unpack it, with the installer built in /usr/src/nvi and a module that is $body
installer() {
    mkdir -p run/kernel
    cp /usr/src/nvi/_out/Linux_x86_64/nvidia-installer run
    cp /usr/src/nvidia-current-*/conftest.sh run/kernel
    printf 'obj-m := nvidia.o\nccflags-y += -Werror\n' >run/kernel/Kbuild
    printf 'modules:\n\t$(MAKE) -C $(SYSOUT) M=$(CURDIR) modules\n' >run/kernel/Makefile
    { echo '#include <linux/module.h>'; echo "$body"; echo 'MODULE_LICENSE("GPL");'; } >run/kernel/nvidia.c
    { echo "NVIDIA Accelerated Graphics Driver for Linux-x86_64"; echo 590.48.01; echo x; echo nvidia; echo x; echo x; echo x; echo x
      for file in Kbuild Makefile conftest.sh nvidia.c; do echo "kernel/$file 0644 KERNEL_MODULE_SRC INHERIT_PATH_DEPTH:1 MODULE:nvidia"; done
    } >run/.manifest
    cd run
}

# dkms_module: a module nvidia/580.105.08 for DKMS, which is $body
dkms_module() {
    mkdir -p /usr/src/nvidia-580.105.08
    printf 'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="580.105.08"\nAUTOINSTALL="yes"\nBUILT_MODULE_NAME[0]="nvidia"\nDEST_MODULE_LOCATION[0]="/kernel/drivers/video"\n%s\n' \
        "$dkms_lines" >/usr/src/nvidia-580.105.08/dkms.conf
    echo 'obj-m := nvidia.o' >/usr/src/nvidia-580.105.08/Kbuild
    { echo '#include <linux/module.h>'; echo "$body"; echo 'MODULE_LICENSE("GPL");'; } >/usr/src/nvidia-580.105.08/nvidia.c
}
