"""What follows a pinned key in its file: only what belongs to it is kept. Real keys of gpg and of vendors."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.packaging import armor, openpgp, pinned_key
from plugins.module_utils.gpu_ready.packaging.openpgp import Packet
from tests.unit.gpg_keys import GpgHome

ROOT = Path(__file__).resolve().parents[2]
NEEDS_GPG = [
    pytest.mark.host_io,
    pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed here"),
]
VENDORS = sorted((ROOT / "catalog/keys").glob("*.asc"))


class Keys:
    """A vendor's key with two subkeys, and an attacker's with one."""

    def __init__(self, gpg: GpgHome, kind: str, encrypts: str) -> None:
        self.gpg = gpg
        self.pinned, self.evil = gpg.generate("vendor", kind), gpg.generate("evil", kind)
        self.own = [gpg.add_subkey(self.pinned, kind, "sign"), gpg.add_subkey(self.pinned, encrypts, "encr")]
        self.foreign = gpg.add_subkey(self.evil, kind, "sign")
        self.served = gpg.export(self.pinned)
        self.packets = list(openpgp.parse_packets(gpg.export(self.evil)))


@pytest.fixture(scope="module", params=[("rsa2048", "rsa2048"), ("ed25519", "cv25519")])
def keys(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keys]:
    """Return keys of one algorithm."""
    gpg = GpgHome(tmp_path_factory.mktemp("gpg") / "home")
    yield Keys(gpg, *request.param)
    gpg.close()


def names(data: bytes) -> list[str]:
    """Fingerprints of the primary key and the subkeys in a key file."""
    return [openpgp.fingerprint(packet.body) for packet in openpgp.parse_packets(data) if packet.tag in (6, 14)]


def raw(packets: list[Packet]) -> bytes:
    return b"".join(packet.raw for packet in packets)


def packet(tag: int, body: bytes) -> bytes:
    return bytes([0xC0 | tag, 0xFF]) + len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("path", VENDORS, ids=lambda path: path.stem[:8])
def test_the_keys_of_vendors_keep_their_subkeys(path: Path) -> None:
    data = openpgp.dearmor(path.read_bytes())
    (key,) = openpgp.parse_keys(data)
    assert names(pinned_key.pick_key(data, key.fingerprint)) == names(data)


class TestWithGpg:
    pytestmark = NEEDS_GPG

    def test_own_subkeys_and_user_ids_are_kept(self, keys: Keys) -> None:
        assert pinned_key.pick_key(keys.served, keys.pinned) == keys.served

    def test_a_subkey_that_the_pinned_key_did_not_sign_is_dropped(self, keys: Keys) -> None:
        """Alone, with its signature by the attacker's key, and with the signature of an own subkey."""
        at = next(number for number, one in enumerate(keys.packets) if one.tag == 14)
        subkey, binding = keys.packets[at], keys.packets[at + 1]
        for addition in (raw([subkey]), raw([subkey, binding])):
            for served in (keys.served + addition, keys.gpg.export(keys.evil) + keys.served + addition):
                assert pinned_key.pick_key(served, keys.pinned) == keys.served

    def test_a_signature_of_another_subkey_binds_nothing(self, keys: Keys) -> None:
        """Only for RSA is the signature itself verified here; programs that know newer algorithms verify them."""
        subkey = next(one for one in keys.packets if one.tag == 14)
        binding = [one for one in openpgp.parse_packets(keys.served) if one.tag == 2][-1]
        found = names(pinned_key.pick_key(keys.served + raw([subkey, binding]), keys.pinned))
        primary = next(one for one in openpgp.parse_packets(keys.served) if one.tag == 6)
        if pinned_key.rsa_numbers(primary.body):
            assert found == [keys.pinned, *keys.own]
        assert found[:3] == [keys.pinned, *keys.own]

    def test_user_attributes_and_other_packets_are_dropped(self, keys: Keys) -> None:
        attribute = packet(17, b"\x01") + raw([keys.packets[2]])  # with a signature behind it
        served = keys.served + attribute + packet(12, b"trust") + packet(60, b"private") + packet(11, b"data")
        assert pinned_key.pick_key(served, keys.pinned) == keys.served

    def test_what_is_kept_is_what_gpg_imports(self, keys: Keys, tmp_path: Path) -> None:
        at = next(number for number, one in enumerate(keys.packets) if one.tag == 14)
        found = pinned_key.pick_key(keys.served + raw(keys.packets[at:]), keys.pinned)
        home = GpgHome(tmp_path / "g")
        try:
            home.run("--import", data=armor.armor(found))
            assert home.fingerprints(keys.pinned) == [keys.pinned, *keys.own]
        finally:
            home.close()


@pytest.mark.parametrize(
    "body", [b"", b"\x04", b"\x03" * 20, b"\x04\x18\x01\x08\xff\xff", b"\x04\x18\x01\x08\x00\x00\x00\xff" + b"\x00" * 9]
)
def test_damaged_signatures_are_none(body: bytes) -> None:
    assert pinned_key.parse_signature(body) is None


@pytest.mark.parametrize("data", [b"\x00" * 9, b"\xff", b"\xc0", b"\x09\x10abc", b"\xff\xff\xff\xff\xff\x10"])
def test_damaged_subpackets_name_no_issuer(data: bytes) -> None:
    assert pinned_key.find_issuers(data) == []
