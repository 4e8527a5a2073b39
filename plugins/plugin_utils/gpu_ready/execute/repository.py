# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The step of each part that has packages to make available."""

from __future__ import annotations

from .model import INSTALL, Execution, Parameters, given


def add_repositories(step: Parameters, part: Execution) -> None:
    """Add repositories, or turn on what the host has of them (``enable``, ``components``)."""
    part.run("gpu_repository", given(step, "enable", "components", "repositories"), INSTALL)
