"""The files for GitHub and GitLab: valid by the schemas of both, and they run what exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / ".github/ISSUE_TEMPLATE"
SCHEMAS = {
    ".github/workflows/check.yml": "vendor.github-workflows",
    ".gitlab-ci.yml": "vendor.gitlab-ci",
    ".github/ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
    ".github/ISSUE_TEMPLATE/failure.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/proposal.yml": "vendor.github-issue-forms",
}
"""Each file and its schema in check-jsonschema, which has copies of them and needs no network."""


def texts(value: Any) -> list[str]:
    """Every text in a file."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    return [value] if isinstance(value, str) else []


def test_every_file_has_a_schema() -> None:
    files = [*(ROOT / ".github").rglob("*.yml"), ROOT / ".gitlab-ci.yml"]
    assert {str(path.relative_to(ROOT)) for path in files} == set(SCHEMAS)


@pytest.mark.host_io
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_file_is_valid(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", SCHEMAS[name], str(ROOT / name)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_both_run_make_check_and_a_fleet_only_where_docker_is_allowed() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    github = yaml_load((ROOT / ".github/workflows/check.yml").read_text())
    gitlab = yaml_load((ROOT / ".gitlab-ci.yml").read_text())
    for jobs in (github["jobs"], gitlab):
        assert {"make check", "make lint-playbooks", "make programs"} <= {
            *texts(jobs["check"])
        } and "make demo" in texts(jobs["lab"])
        assert any("make containers" in texts(job) for job in jobs.values())
        used = [target for text in texts(jobs) for target in re.findall(r"^make ([a-z-]+)$", text)]
        assert set(used) <= targets
    assert "--privileged" in github["jobs"]["lab"]["container"]["options"] and "if" in github["jobs"]["lab"]
    assert gitlab["lab"]["rules"] == [{"if": '$GPU_READY_LAB == "true"'}]
    assert github["permissions"] == {"contents": "read"}


def test_actions_are_pinned_by_commit_with_their_version() -> None:
    """Container images (debian:12) are not: see docs/security.md."""
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        used = re.findall(r"uses: (.*)", path.read_text())
        assert used
        for one in used:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one


def test_an_issue_about_a_failure_has_the_report_and_what_gpu_explain_prints() -> None:
    form = yaml_load((TEMPLATES / "failure.yml").read_text())["body"]
    required = {field["id"] for field in form if field.get("validations", {}).get("required")}
    assert {"command", "report", "explain", "versions"} <= required
    text = " ".join(texts(form))
    assert "reports/latest.json" in text and "gpu-explain host" in text and "gpu-explain read" in text
