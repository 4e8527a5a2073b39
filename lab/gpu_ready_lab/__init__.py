"""Simulated GPU hosts and a vendor mirror on one machine: see docs/dev/lab.md."""
