"""How two hosts differ, file by file."""

from gpu_ready_lab import footprint

MANIFEST = "/var/lib/gpu-ready/manifest.json"


def test_hosts_that_are_alike_differ_in_nothing() -> None:
    found = {"/etc/x": "100644 0:0 abc", MANIFEST: '100600 0:0 {"holds": {"a": {}}}', "/etc/y": "link to {z"}
    assert footprint.differences(found, dict(found)) == []


def test_a_record_differs_by_section() -> None:
    before = {MANIFEST: '100600 0:0 {"holds": {"a": {}}, "modules": {"m": {}}, "packages": {"b": {}, "same": {}}}'}
    after = {MANIFEST: '100600 0:0 {"holds": {"a": {}}, "packages": {"c": {}, "same": {}}}'}
    assert footprint.differences(before, after) == [f'{MANIFEST}#packages: {{"b": {{}}}} became {{"c": {{}}}}']


def test_what_came_and_what_went_is_absent_on_the_other_side() -> None:
    lines = footprint.differences({"/etc/x": "100644 0:0 abc"}, {"/etc/y": "link to z"})
    assert lines == ["/etc/x: 100644 0:0 abc became absent", "/etc/y: absent became link to z"]
