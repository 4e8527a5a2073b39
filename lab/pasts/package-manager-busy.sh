# J3: unattended-upgrades at work: dpkg's lock is held for half a minute, again and again
# Page: https://wiki.debian.org/UnattendedUpgrades
printf '%s\n' "[Unit]" "Description=Daily apt upgrade and clean activities" "[Service]" \
  "ExecStart=/usr/bin/python3 -c \"import fcntl, time; f = open('/var/lib/dpkg/lock-frontend', 'a'); fcntl.lockf(f, fcntl.LOCK_EX); time.sleep(30)\"" \
  "Restart=always" "RestartSec=15" "[Install]" "WantedBy=multi-user.target" >/etc/systemd/system/lab-apt-daily-upgrade.service
systemctl daemon-reload
systemctl enable --now lab-apt-daily-upgrade.service
