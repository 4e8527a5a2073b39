"""Where CRI-O's configuration is: crio.conf, then every file of the directory by name (crio.conf.d(5))."""

MAIN = "/etc/crio/crio.conf"
DIRECTORY = "/etc/crio/crio.conf.d"
DROP_IN = DIRECTORY + "/99-gpu-ready.conf"
UNREAD = "/etc/crio/conf.d"
"""Where nvidia-ctk wrote until its pull request 1829 of May 2026; CRI-O never reads it."""
SOCKET = "/run/crio/crio.sock"
