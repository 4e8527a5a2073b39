"""States that lab hosts start from: how fleets name them, what makes one stale, and which ones the cache keeps."""

import os
import time
from pathlib import Path

import pytest
from gpu_ready_lab import engine, fleet, hardware, mirror, paths, states
from gpu_ready_lab.say import LabError

CARDS = '{device: "1eb8"}'


def test_a_host_from_a_state_is_the_states_with_its_own_variables() -> None:
    (host,) = fleet.parse("{name: x, hosts: {a: {state: debian12, vars: {cudnn_source: archive}}}}").hosts
    made = fleet.states()["debian12"]
    assert (host.state, host.distribution, host.gpus) == ("debian12", made.distribution, made.gpus)
    assert host.vars == {**made.vars, "cudnn_source": "archive"} and host.name == "a"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{name: x, hosts: {a: {state: solaris}}}", ["hosts.a.state", "solaris", "debian12"]),
        ("{name: x, hosts: {a: {state: debian12, nvswitches: 2}}}", ["hosts.a", "'nvswitches'"]),
        ("{name: x, hosts: {a: {state: debian12, gpus: []}}}", ["hosts.a.gpus", "0 GPUs", "debian12 has 4"]),
        ("{name: x, hosts: {a: {distribution: debian12, extra: 3}}}", ["hosts.a.extra", "true or false"]),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, words: list[str]) -> None:
    with pytest.raises(LabError) as error:
        fleet.parse(text, "some.yml")
    assert [word for word in words if word not in str(error.value)] == []


def test_hosts_of_one_state_have_the_gpus_of_the_state() -> None:
    text = "{name: NAME, hosts: {a: {state: debian12}, b: {distribution: debian12, gpus: [" + CARDS + "]}}}"
    first, second = (fleet.parse(text.replace("NAME", name)) for name in ("one", "two"))
    uuids = [hardware.gpu_uuid(each.name, host, host.gpus[0]) for each in (first, second) for host in each.hosts]
    assert uuids[0] == uuids[2] and uuids[1] != uuids[3]


def test_a_host_from_a_state_may_have_other_gpus_with_uuids_of_their_own() -> None:
    text = '{name: x, hosts: {a: {state: debian12}, b: {state: debian12, gpus: [{device: "20b2", count: 4}]}}}'
    given = fleet.parse(text)
    own, other = given.hosts
    assert [gpu.device for gpu in other.gpus] == ["20b2"] * 4 and other.vars == own.vars
    first, second = (hardware.gpu_uuid(given.name, host, host.gpus[0]) for host in given.hosts)
    assert own.gpus[0].address == other.gpus[0].address and first != second


def test_a_change_of_the_product_makes_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "REPO", tmp_path)
    for name in states.PRODUCT:
        path = tmp_path / name
        if "." in name:
            path.write_text("")
        else:
            path.mkdir()
    digests = []
    for place in ("roles/main.yml", "library/a.py", "library/b.py", "library/__pycache__/a.pyc"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("x")
        states.product_digest.cache_clear()
        digests.append(states.product_digest())
    states.product_digest.cache_clear()
    assert len(set(digests)) == 3 and digests[2] == digests[3]


def test_every_part_of_the_product_exists() -> None:
    assert [name for name in states.PRODUCT if not (paths.REPO / name).exists()] == []
    assert "requirements" in states.PRODUCT  # the version of ansible-core


@pytest.mark.parametrize("name", ["demo", "real", "sample", "matrix", "versions_old", "versions_bare"])
def test_fleets_that_are_provisioned_from_bare_hosts_use_no_state(name: str) -> None:
    hosts = fleet.read(paths.REPO / f"lab/fleets/{name}.yml").hosts
    assert [host.name for host in hosts if host.state is not None] == []


def test_the_cache_keeps_the_newest_states_of_a_name_and_no_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "cache", lambda: tmp_path)
    monkeypatch.setattr(engine, "docker", lambda *arguments, **options: "new\nprevious\nolder\n")
    monkeypatch.setattr(states, "succeeds", lambda argv, limit=0: True)
    for name in ("debian12-new", "debian12-previous", "debian12-older", "rocky9-fresh", "rocky9-old"):
        (tmp_path / "states" / name).mkdir(parents=True)
    old = time.time() - states.FRESH_FOR - 60
    os.utime(tmp_path / "states/rocky9-old", (old, old))
    states._forget_older("debian12")
    kept = sorted(path.name for path in (tmp_path / "states").iterdir())
    assert kept == ["debian12-new", "debian12-previous", "rocky9-fresh"]


def test_a_fleet_gets_the_repositories_of_its_distributions() -> None:
    everything = mirror.repositories_for(None)
    debian = mirror.repositories_for(["debian12"])
    assert "cuda-debian12" in debian and "container-toolkit" in debian
    assert not [name for name in debian if "ubuntu" in name or "rocky" in name or "rhel" in name]
    assert set(mirror.repositories_for(["rocky9"])) < set(everything) == set(mirror.repositories())
