# A container with all GPUs by CDI (--device nvidia.com/gpu=all); before others: if docker's CDI is off, docker restarts
# https://docs.docker.com/build/building/cdi/ and https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/cdi-support.html
need_driver
[ "$(docker version --format '{{.Server.Version}}' | cut -d. -f1)" -ge 25 ] || fail "this docker knows no CDI: it needs version 25"
[ -e /var/run/cdi/nvidia.yaml ] || [ -e /etc/cdi/nvidia.yaml ] || nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml
python3 - <<'P'
import json, pathlib, subprocess, sys
path = pathlib.Path("/etc/docker/daemon.json")
options = json.loads(path.read_text()) if path.exists() else {}
if not options.get("features", {}).get("cdi"):
    options.setdefault("features", {})["cdi"] = True
    path.write_text(json.dumps(options, indent=4) + "\n")
    subprocess.run(["systemctl", "restart", "docker"], check=True)
P
start_container work-container-cdi --device nvidia.com/gpu=all --
