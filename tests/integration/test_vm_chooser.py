"""Which cards gpu-ready assigns to a module of NVIDIA's, and which of them that module accepts in a real kernel."""

import pytest

from plugins.module_utils.gpu_ready.system.nvrm_version import OPEN, PROPRIETARY
from plugins.plugin_utils.gpu_ready.plan.driver import candidates
from tests.integration import guests
from tests.integration.fleet import Fleet

pytestmark = [pytest.mark.lab, pytest.mark.long]

HOST = "vmjudge"
FERMI, K80, P40, V100, A100, H100, RTX5090, UNKNOWN = "06dd", "102d", "1b38", "1db1", "20b0", "2330", "2b85", "2fff"
CARDS = (FERMI, K80, P40, V100, A100, H100, RTX5090, UNKNOWN)


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    return guests.up("vm_chooser")


def judge(fleet: Fleet, package: str) -> tuple[set[str], str]:
    """Insert a module into the kernel of the guest with all cards; returns the cards that it accepted, and its messages."""
    guests.replace_cards(fleet, HOST, *CARDS)
    output = guests.insert(fleet, HOST, guests.built(fleet.ssh(HOST, "uname -r").strip(), package), "nvidia")
    taken = guests.bound(fleet, HOST)
    fleet.ssh(HOST, "rmmod nvidia")
    return taken, output


def meant(branch: int, flavour: str) -> set[str]:
    """The cards that gpu-ready would assign to a driver."""
    return {card for card in CARDS if (branch, flavour) in candidates.pairs_of_gpu(card)}


def test_the_open_module_accepts_the_cards_that_it_is_chosen_for(fleet: Fleet) -> None:
    taken, output = judge(fleet, "nvidia-open-kernel-dkms@release")
    assert taken == {A100, H100} == meant(535, OPEN)
    assert "does not include the required GPU" in output, output


def test_the_plan_refuses_the_open_module_for_a_p40(fleet: Fleet) -> None:
    guests.replace_cards(fleet, HOST, P40)
    run = fleet.play("--check", extra={"nvidia_driver_flavour": "open"})
    assert run.rc != 0
    assert "Tesla P40 [10de:1b38] at 0001:00:00.0 has no open kernel module" in run.failures(HOST)


@pytest.mark.parametrize(
    ("package", "branch", "words"),
    [
        ("nvidia-kernel-dkms", 535, "470.xx Legacy drivers"),
        ("nvidia-tesla-470-kernel-dkms", 470, "390.xx Legacy drivers"),
    ],
)
def test_the_proprietary_modules_accept_the_cards_that_they_are_chosen_for(
    fleet: Fleet, package: str, branch: int, words: str
) -> None:
    taken, output = judge(fleet, package)
    assert taken == meant(branch, PROPRIETARY)
    assert words in output, output


@pytest.mark.parametrize(
    ("card", "words"),
    [
        (FERMI, "has a driver that fits (340 proprietary, 390 proprietary)"),
        (K80, "set nvidia_driver_source to runfile"),
    ],
)
def test_the_plan_refuses_a_card_that_no_driver_of_this_release_supports(fleet: Fleet, card: str, words: str) -> None:
    guests.replace_cards(fleet, HOST, card)
    run = fleet.play("--check")
    assert run.rc != 0 and words in run.failures(HOST), run.failures(HOST)


@pytest.mark.parametrize("card", [A100, H100, P40, V100])
def test_the_plan_chooses_a_module_that_supports_the_card(fleet: Fleet, card: str) -> None:
    guests.replace_cards(fleet, HOST, card)
    chosen = fleet.play("--check").plan(HOST)["choice"]["driver"]
    assert chosen["flavour"] == (OPEN if card in (A100, H100) else PROPRIETARY)
    assert (chosen["branch"], chosen["flavour"]) in candidates.pairs_of_gpu(card)
