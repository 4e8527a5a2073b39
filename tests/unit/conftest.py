"""Programs that several files of tests run for real, installed where they are missing."""

import pytest

from tests.unit import chromium, real_programs


@pytest.fixture(scope="session")
def prometheus() -> None:
    """Prometheus, with its promtool."""
    real_programs.need_on_path("promtool", "prometheus")


@pytest.fixture(scope="session")
def browser() -> None:
    """A Chromium, or a Chrome."""
    if chromium.find() is None:
        real_programs.need_on_path("chromium", "chromium")


@pytest.fixture(scope="session")
def zsh() -> None:
    real_programs.need_on_path("zsh", "zsh")
