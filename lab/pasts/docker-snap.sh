# I1: docker as a snap: its engine, configuration and data are its own, /usr/bin has no docker
# Page: https://snapcraft.io/docker (snap install docker); paths: https://github.com/canonical/docker-snap
install_debs iptables libdevmapper1.02.1
made=$(mktemp -d)
cd "$made"
chmod 755 "$made"
apt-get -q download docker.io containerd runc tini
revision=/snap/docker/3377
mkdir -p "$revision/bin" /snap/bin /var/snap/docker/3377/config /var/snap/docker/common
for package in *.deb; do dpkg-deb -x "$package" "$made/root"; done
find "$made/root/usr/bin" "$made/root/usr/sbin" -type f -exec cp {} "$revision/bin/" \;
ln -s 3377 /snap/docker/current
ln -s 3377 /var/snap/docker/current
rm -r "$made"
printf '{\n    "log-level":        "error"\n}\n' >/var/snap/docker/current/config/daemon.json
printf '#!/bin/sh\nexec /snap/docker/current/bin/docker "$@"\n' >/snap/bin/docker
chmod 755 /snap/bin/docker
printf '%s\n' "[Unit]" "Description=Service for snap application docker.dockerd" "[Service]" \
  "Environment=PATH=$revision/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
  "ExecStart=$revision/bin/dockerd --config-file=/var/snap/docker/current/config/daemon.json --data-root=/var/lib/docker --pidfile=/run/snap.docker/docker.pid --exec-root=/run/snap.docker" \
  "RuntimeDirectory=snap.docker" "[Install]" "WantedBy=multi-user.target" >/etc/systemd/system/snap.docker.dockerd.service
systemctl daemon-reload
systemctl enable --now snap.docker.dockerd.service
