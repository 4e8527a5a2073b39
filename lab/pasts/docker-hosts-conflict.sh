# I5: docker with "hosts" in daemon.json beside `-H fd://` of its unit, which does not start; after docker-list
# Page: https://docs.docker.com/engine/daemon/troubleshoot/ ("Conflicts between daemon.json and startup scripts")
mkdir -p /etc/docker
printf '{\n  "hosts": ["unix:///var/run/docker.sock", "tcp://127.0.0.1:2375"]\n}\n' >/etc/docker/daemon.json
systemctl restart docker.service || true
systemctl stop docker.service docker.socket || true
