"""The error of an uninstallation."""

from ...base.errors import GpuReadyError


class UninstallError(GpuReadyError):
    """A recorded change cannot be reverted. The message has cause and remedy."""
