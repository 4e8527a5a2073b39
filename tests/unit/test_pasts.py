"""Each script of lab/pasts has a host, and each host an expectation that tests/integration/test_pasts.py can check."""

from gpu_ready_lab import fleet
from gpu_ready_lab import pasts as scripts

from tests.integration import pasts


def test_every_past_is_that_of_a_host() -> None:
    used = {name for case in pasts.cases() for name in case.past}
    assert used == set(scripts.described())


def test_every_host_has_an_expectation_that_the_test_can_check() -> None:
    fleet.read(pasts.FLEET_FILE)
    for case in pasts.cases():
        assert case.outcome in pasts.OUTCOMES, case.host
        assert (case.outcome == "refuse") == bool(case.refusal_codes), case.host
        assert {*case.keeps} <= set(pasts.STEPS), case.host
