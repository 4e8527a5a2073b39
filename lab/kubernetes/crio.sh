# A node of kubeadm with CRI-O, without Kubernetes: kubeadm's files, the configuration of CRI-O's packages, and a stand-in
# for CRI-O, which Debian does not have. It reads the drop-in files in CRI-O's order and ends where CRI-O would: a runtime
# without a monitor, a default runtime without an entry (pkg/config/config.go of cri-o f954a17). It starts no container.
# Runs as root on the host, with `set -eu`.
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -q -y --no-install-recommends install crun conmon
mkdir -p /var/lib/kubelet /etc/crio/crio.conf.d /usr/libexec/crio
cp /usr/bin/crun /usr/bin/conmon /usr/libexec/crio/
cat >/var/lib/kubelet/config.yaml <<'KUBELET'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///var/run/crio/crio.sock
KUBELET
cat >/etc/crio/crio.conf.d/10-crio.conf <<'CRIO'
[crio.image]
signature_policy = "/etc/crio/policy.json"

[crio.runtime]
default_runtime = "crun"

[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
runtime_root = "/run/crun"
monitor_path = "/usr/libexec/crio/conmon"
CRIO
cat >/usr/bin/crio <<'CRIO'
#!/usr/bin/python3
"""Stand-in of the gpu-ready lab for CRI-O: reads its configuration and opens its socket."""
import glob, os, signal, socket, subprocess, sys, tomllib

runtimes, default = {}, ""
for path in ["/etc/crio/crio.conf", *sorted(glob.glob("/etc/crio/crio.conf.d/*"))]:
    if os.path.exists(path):
        with open(path, "rb") as file:
            table = tomllib.load(file).get("crio", {}).get("runtime", {})
        default = table.get("default_runtime", default)
        runtimes.update(table.get("runtimes", {}))
if default not in runtimes:
    sys.exit(f'default_runtime set to "{default}", but no runtime entry table [crio.runtime.runtimes.{default}] was found')
for name, one in list(runtimes.items()):
    if not os.path.exists(one.get("runtime_path", "")):
        print(f'Runtime handler "{name}" is being ignored due to: invalid runtime_path for runtime \'{name}\'', file=sys.stderr)
        del runtimes[name]
    elif not os.path.exists(one.get("monitor_path", "")):
        sys.exit(f"failed to translate monitor fields for runtime {name}: conmon validation")
print("runtimes:", " ".join(sorted(runtimes)), "default:", default, flush=True)
os.makedirs("/run/crio", exist_ok=True)
if os.path.exists("/run/crio/crio.sock"):
    os.unlink("/run/crio/crio.sock")
server = socket.socket(socket.AF_UNIX)
server.bind("/run/crio/crio.sock")
server.listen()
subprocess.run(["systemd-notify", "--ready"], check=True)
signal.pause()
CRIO
chmod 755 /usr/bin/crio
# contrib/systemd/crio.service of CRI-O.
cat >/etc/systemd/system/crio.service <<'UNIT'
[Unit]
Description=Container Runtime Interface for OCI (CRI-O)
Before=kubelet.service

[Service]
Type=notify
NotifyAccess=all
ExecStart=/usr/bin/crio
ExecReload=/bin/kill -s HUP $MAINPID
TimeoutStartSec=0
Restart=on-failure
RestartSec=10

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable --now crio.service
