"""After a run that is not green comes one command that can be typed."""

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import commands, model

SITE, AUDIT, FLEET = "site.yml", "playbooks/audit.yml", ["gpu_hosts"]


@pytest.mark.parametrize(
    ("kind", "states", "playbook", "inventories", "variables", "expected"),
    [
        ("site", {}, SITE, FLEET, False, ""),
        ("audit", {}, AUDIT, FLEET, False, ""),
        ("upgrade", {"a": "rolled back"}, "playbooks/upgrade_drivers.yml", FLEET, False, ""),
        (
            "site",
            {"a": "refused", "b": "failed"},
            SITE,
            FLEET,
            False,
            "Next: follow the remedies above, then run: ansible-playbook site.yml -i gpu_hosts --limit a,b",
        ),
        (
            "site",
            {"a": "failed"},
            "gpu_ready.nodes.site",
            [],
            True,
            "Next: follow the remedies above, then run with the same -e options: ansible-playbook gpu_ready.nodes.site --limit a",
        ),
        ("audit", {"a": "drift"}, AUDIT, FLEET, False, "Repair: ansible-playbook site.yml -i gpu_hosts --limit a"),
        (
            "audit",
            {"a": "drift", "b": "unreachable"},
            f"../{AUDIT}",
            ["one", "two words"],
            False,
            "Next: follow the remedies above, then run: ansible-playbook ../site.yml -i one -i 'two words' --limit a",
        ),
        ("audit", {"a": "drift"}, "gpu_ready.nodes.audit", [], False, "Repair: ansible-playbook gpu_ready.nodes.site --limit a"),
        ("audit", {"a": "drift"}, "mine.yml", [], False, "Repair: ansible-playbook site.yml --limit a"),
        ("audit", {f"n{n}": "drift" for n in range(11)}, AUDIT, FLEET, False, "Repair: ansible-playbook site.yml -i gpu_hosts"),
        ("audit", {f"n{n}": "drift" for n in range(10)}, AUDIT, [], False,
         "Repair: ansible-playbook site.yml --limit n0,n1,n2,n3,n4,n5,n6,n7,n8,n9"),
        ("site", {f"n{n}": "failed" for n in range(12)}, SITE, [], False,
         "Next: follow the remedies above, then run: ansible-playbook site.yml"),
    ],
)  # fmt: skip
def test_the_next_command(
    kind: str, states: dict[str, str], playbook: str, inventories: list[str], variables: bool, expected: str
) -> None:
    assert commands.next_command(kind, states, 12, playbook, inventories, variables) == expected


@pytest.mark.parametrize(
    ("state", "remedy", "own", "expected"),
    [
        ("drift", "", "", "drift"),
        ("drift", "", "drain and reboot the host", "remedy"),
        ("drift", "drain and reboot the host", "", "remedy"),
        ("refused", "y", "", "refused"),
    ],
)
def test_drift_with_a_remedy_of_its_own_is_none_for_site_yml(state: str, remedy: str, own: str, expected: str) -> None:
    checks = (model.Check("gpus", False, remedy=own), model.Check("docker", True, remedy="nothing"))
    assert commands.state_of(model.Host("a", state, False, model.Advice("why", remedy), checks=checks)) == expected
    command = commands.next_command("audit", {"a": expected}, 2, AUDIT, FLEET, False)
    assert command.startswith("Repair: ") == (expected == "drift")


def test_a_command_for_all_hosts_has_no_limit() -> None:
    assert commands.next_command("audit", {"a": "drift"}, 1, AUDIT, FLEET, False) == (
        "Repair: ansible-playbook site.yml -i gpu_hosts"
    )
