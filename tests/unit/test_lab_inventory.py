"""Files of the lab for Ansible: host keys are checked, variables keep their types."""

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready_lab import check, fleet, inventory, paths

ADDRESSES = {"a": "10.199.0.10", "b": "10.199.0.11"}


def test_inventory_checks_host_keys() -> None:
    text = inventory.inventory_text(ADDRESSES, Path("/x/.lab/f"))
    assert "a ansible_host=10.199.0.10\n" in text
    assert "StrictHostKeyChecking=yes" in text
    assert "UserKnownHostsFile=/x/.lab/f/known_hosts" in text


def test_ssh_configuration_checks_host_keys() -> None:
    text = inventory.ssh_config_text(ADDRESSES, Path("/x"))
    assert "StrictHostKeyChecking yes" in text
    assert "Host a\n  HostName 10.199.0.10\n" in text


def test_known_hosts_have_address_and_name() -> None:
    text = inventory.known_hosts_text(ADDRESSES, {"a": "ssh-ed25519 AAAA root@a", "b": "ssh-ed25519 BBBB root@b"})
    assert text == "10.199.0.10,a ssh-ed25519 AAAA\n10.199.0.11,b ssh-ed25519 BBBB\n"


def test_variables_keep_their_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "fleet_directory", lambda name: tmp_path / name)
    read = fleet.parse(
        '{name: x, hosts: {a: {distribution: debian12, vars: {cuda_toolkit_versions: ["12.10"], y: true}}}}'
    )
    inventory.write(read, {"a": "10.199.0.10"}, {"a": "ssh-ed25519 AAAA"}, {"gpu_ready_mirror": "http://m"})
    assert yaml_load((tmp_path / "x/host_vars/a.yml").read_text()) == {
        "cuda_toolkit_versions": ["12.10"],
        "y": True,
    }
    assert yaml_load((tmp_path / "x/group_vars/gpu_hosts.yml").read_text()) == {"gpu_ready_mirror": "http://m"}


FLEET = fleet.parse(
    '{name: x, hosts: {a: {distribution: debian12, expect: {result: ready, driver_branch: 580, cuda: ["13.0", "12.8"]}},'
    " b: {distribution: debian12, expect: {result: refused, refusal_codes: [no_driver_for_mixed_gpus]}},"
    " c: {distribution: debian12}}}"
)
GOOD = {
    "a": {"state": "ready", "cells": {"driver_loaded": "580.178.04", "cuda": "12.8, 13.0"}},
    "b": {"state": "refused", "refusals": [{"code": "no_driver_for_mixed_gpus"}]},
}


def report(tmp_path: Path, hosts: dict[str, Any]) -> Path:
    path = tmp_path / "latest.json"
    path.write_text(json.dumps({"hosts": hosts}))
    return path


def test_a_report_as_expected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(FLEET, report(tmp_path, GOOD)) == 0
    assert "all 2 hosts are as expected" in capsys.readouterr().out


def test_differences_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = {
        "a": {
            "state": "failed",
            "why": {"message": "disk full"},
            "cells": {"driver_loaded": "595.91.07", "cuda": "12.8"},
        }
    }
    assert check.main(FLEET, report(tmp_path, bad)) == 1
    out = capsys.readouterr().out
    for words in (
        "a: result: expected 'ready', found 'failed'",
        "driver_branch: expected 580, found 595",
        "disk full",
        "b: expected refused",
    ):
        assert words in out
