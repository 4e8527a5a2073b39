#!/bin/sh
# Stand-in for NVIDIA's self-extracting driver installer (gpu-ready lab). The archive follows the line END-OF-SCRIPT.
version=@version@
sum=@sha256@
name="NVIDIA Accelerated Graphics Driver for Linux-x86_64 $version"
payload() { sed '1,/^END-OF-SCRIPT$/d' "$0"; }

target=NVIDIA-Linux-x86_64-$version
action=install silent=
while [ $# -gt 0 ]; do
  case "$1" in
    --check) action=check ;;
    -x | --extract-only) action=extract ;;
    --target) target=$2 action=extract; shift ;;
    --target=*) target=${1#--target=} action=extract ;;
    --info | --lsm) action=info ;;
    -v | --version) action=version ;;
    -h | --help | -A | --advanced-options) action=help ;;
    --print-recommended-kernel-module-type) action=recommend ;;
    --uninstall) action=uninstall ;;
    -s | --silent) silent=yes ;;
    *) ;; # the many options of the real one change nothing here
  esac
  shift
done

case "$action" in
  info) echo "$name" ;;
  version)
    echo "nvidia-installer:  version $version"
    exit 0
    ;;
  help) echo "$0: stand-in for the installer of $name: --check, -x/--extract-only [--target DIR], --silent" ;;
  check | extract | install | recommend | uninstall)
    printf 'Verifying archive integrity... '
    if [ "$(payload | sha256sum | cut -d ' ' -f 1)" != "$sum" ]; then
      echo "Error in check sums"
      exit 1
    fi
    echo OK
    [ "$action" != check ] || exit 0
    ;;
esac
case "$action" in
  extract)
    if [ -e "$target" ]; then
      echo "The directory '$target' already exists.  Please either remove this directory, or specify a different target directory with the '--target' option." >&2
      exit 1
    fi
    mkdir -p "$target"
    printf 'Uncompressing %s' "$name"
    payload | tar -xz -C "$target" || exit 1
    echo '...'
    ;;
  recommend) case "$version" in 4* | 53* | 550*) echo proprietary ;; *) echo open ;; esac ;;
  install | uninstall)
    if [ "$(id -u)" != 0 ]; then
      echo 'ERROR: nvidia-installer must be run as root' >&2
      exit 1
    fi
    echo "nvidia-installer log file '/var/log/nvidia-installer.log'" >/var/log/nvidia-installer.log
    echo "ERROR: the gpu-ready lab's stand-in for this installer cannot install yet." >>/var/log/nvidia-installer.log
    [ -n "$silent" ] || echo "ERROR: the gpu-ready lab's stand-in for this installer cannot install yet." >&2
    echo "ERROR: Installation has failed.  Please see the file '/var/log/nvidia-installer.log' for details." >&2
    exit 1
    ;;
esac
exit 0
END-OF-SCRIPT
