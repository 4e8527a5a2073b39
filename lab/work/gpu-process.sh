# A process that holds a GPU
need_driver
if systemctl is-active --quiet work-gpu-process; then systemctl stop work-gpu-process; fi
systemd-run --quiet --collect --unit work-gpu-process /usr/lib/gpu-ready-lab/hold
pid=$(systemctl show --property MainPID --value work-gpu-process)
wait_until test -e /proc/$pid/fd/4
refresh
