"""gpu-ready-check: its files on a host."""

from . import monitoring_files

NAME = "gpu-ready-check"
DIRECTORY = "/usr/local/lib/" + NAME
PROGRAMS = (DIRECTORY, monitoring_files.DIRECTORY)
"""Directories that Python runs as the check: its own, and that of the service that writes metrics."""
