#!/bin/sh
# Stand-in for the script that NVIDIA's unit starts the fabric manager with, from 570 on. What it asks for on hosts with
# NVLink 5 switches, and its messages: github.com/spectrocloud/CanvOS/pull/700 (ib_umad, in its precheck),
# github.com/NVIDIA/gpu-operator/issues/2781 (without mlx5_ib no switch is found), github.com/NVIDIA/gpu-driver-container
# (SW_MNG in the vital product data of a bridge; nvlsm and infiniband-diags are installed).
# A bridge with its driver counts as an InfiniBand device once mlx5_ib is loaded: the lab has no /sys/class/infiniband.
set -u

mode='' fm_config='' fm_pid='' nvlsm_config='' nvlsm_pid=''
while [ $# -gt 1 ]; do
  case "$1" in
    --mode) mode=$2 ;;
    --fm-config-file) fm_config=$2 ;;
    --fm-pid-file) fm_pid=$2 ;;
    --nvlsm-config-file) nvlsm_config=$2 ;;
    --nvlsm-pid-file) nvlsm_pid=$2 ;;
    *) echo "unknown option $1" >&2; exit 1 ;;
  esac
  shift 2
done
nvlsm=/opt/nvidia/nvlsm/sbin/nvlsm

bridge() {
  [ -d /sys/module/mlx5_ib ] || return 1
  for device in /sys/bus/pci/devices/*; do
    [ "$(cat "$device/vendor")" = 0x15b3 ] && [ -e "$device/driver" ] || continue
    grep -qs SW_MNG "$device/vpd" && return 0
  done
  return 1
}

if bridge; then
  echo 'Detected NVL5+ system'
  command -v ibstat >/dev/null || { echo 'ibstat: command not found' >&2; exit 1; }
  if [ ! -d /sys/module/ib_umad ]; then
    echo 'Kernel module "ib_umad" has not been loaded, fabric manager cannot be started' >&2
    exit 1
  fi
  if [ ! -x "$nvlsm" ]; then
    echo "\"$nvlsm\" does not exist. Please install \"Nvidia NVLink Subnet Manager\" (nvlsm) package" >&2
    exit 1
  fi
  if [ "$mode" = start ]; then
    "$nvlsm" --config "$nvlsm_config" --pid_file "$nvlsm_pid" || exit 1
    echo 'Started "Nvidia NVLink Subnet Manager"'
  fi
else
  echo 'Detected Pre-NVL5 system'
fi
case "$mode" in
  precheck) ;;
  start)
    /usr/bin/nv-fabricmanager --config "$fm_config" --pid-file "$fm_pid" || exit 1
    echo 'Started "Nvidia Fabric Manager"'
    ;;
  *) echo "unknown mode $mode" >&2; exit 1 ;;
esac
