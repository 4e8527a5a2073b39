"""Fingerprints of public keys, compared with what gpg made (generated once, in the test, where gpg exists)."""

import base64
import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.packaging import armor, openpgp, pinned_key

# An Ed25519 key packet built by hand: version 4, time 1, algorithm 22, curve OID and a point.
BODY = bytes([4, 0, 0, 0, 1, 22, 9]) + bytes.fromhex("2b06010401da470f01") + bytes([1, 7, 0x40]) + bytes(32)
OLD = bytes([0x98, len(BODY)]) + BODY
NEW = bytes([0xC6, len(BODY)]) + BODY
USER = bytes([0xB4, 4]) + b"user"


def armored(data: bytes) -> bytes:
    text = base64.encodebytes(data)
    return (
        b"-----BEGIN PGP PUBLIC KEY BLOCK-----\nComment: x\n\n" + text + b"=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n"
    )


@pytest.mark.parametrize("data", [OLD, NEW, OLD + USER, armored(OLD + USER), armored(NEW).replace(b"\n", b"\r\n")])
def test_parse_key_in_every_form(data: bytes) -> None:
    (key,) = openpgp.parse_keys(data)
    assert key.fingerprint == openpgp.fingerprint(BODY)
    assert len(key.fingerprint) == 40


def test_pick_omits_other_keys() -> None:
    other = BODY[:4] + b"\x02" + BODY[5:]
    both = OLD + USER + bytes([0x98, len(other)]) + other
    assert pinned_key.pick_key(both, openpgp.fingerprint(BODY).lower()) == OLD + USER


def test_pick_keeps_every_signature_of_the_key_and_of_its_names() -> None:
    signature = bytes([0x88, 2]) + b"\x04\x10"
    whole = OLD + signature * 2 + USER + signature * 3 + USER
    assert pinned_key.pick_key(whole, openpgp.fingerprint(BODY)) == whole


def test_a_wrong_fingerprint_names_both() -> None:
    with pytest.raises(openpgp.OpenPgpError, match=f"{openpgp.fingerprint(BODY)}, expected is {'AB' * 20}"):
        pinned_key.pick_key(OLD, "ABAB " * 10)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>404</html>",
        OLD[:20],
        armored(OLD)[:60],
        USER,
        b"\xc6",
        b"\x98\x05\x03aaaa",
        OLD + b"x",
        b"\xc6\xe0x",
    ]
    + [armored(OLD).replace(b"m", b"!"), armored(OLD).replace(b"=abcd", b"a\n=abcd")],
)
def test_damaged_keys_are_errors(data: bytes) -> None:
    with pytest.raises(openpgp.OpenPgpError):
        openpgp.parse_keys(data)


@pytest.mark.host_io
@pytest.mark.skipif(not shutil.which("gpg"), reason="gpg is not installed here")
@pytest.mark.parametrize("kind", ["rsa2048", "ed25519"])
def test_the_same_fingerprint_as_gpg(tmp_path: Path, kind: str) -> None:
    home = tmp_path / "g"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--batch", "--homedir", str(home)]
    try:
        subprocess.run([*gpg, "--passphrase", "", "--quick-gen-key", "t@example.org", kind, "sign", "0"], check=True, capture_output=True)  # fmt: skip
        listed = subprocess.run([*gpg, "--with-colons", "-k"], check=True, capture_output=True, text=True).stdout
        expected = next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))
        for extra in ([], ["--armor"]):
            data = subprocess.run([*gpg, *extra, "--export"], check=True, capture_output=True).stdout
            assert [key.fingerprint for key in openpgp.parse_keys(data)] == [expected]
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (armored(OLD)[:60], "its armour has no end"),
        (armored(OLD).replace(b"m", b"!"), "its armour is damaged"),
        (b"<html>404</html>", "it begins with '<html>404</html>'"),
        (OLD + b"x", f"it is damaged at byte {len(OLD)}"),
    ],
)
def test_what_is_wrong_with_a_key_is_named(data: bytes, words: str) -> None:
    with pytest.raises(openpgp.OpenPgpError, match=re.escape(words)):
        openpgp.parse_keys(data)


def test_the_fingerprint_of_a_version_6_key() -> None:
    """The sample certificate of RFC 9580, appendix A.3."""
    packet = base64.b64decode("xioGY4d/4xsAAAAg+U2nu0jWCmHlZ3BqZYfQMxmZu52JGggkLq2EVD34laM=")
    (key,) = openpgp.parse_keys(packet)
    assert key.fingerprint == "CB186C4F0609A697E4D52DFA6C722B0C1F1E27C18A56708F6525EC27BAD9ACC9"


def test_armour_round_trip() -> None:
    data = bytes(range(256)) * 3
    text = armor.armor(data)
    assert openpgp.dearmor(text) == data
    assert max(len(line) for line in text.splitlines()) == 64
    assert armor.crc24(b"123456789") == 0x21CF02  # the check value of CRC-24/OPENPGP


def test_key_with_a_published_checksum_of_its_file() -> None:
    text = armored(OLD + USER)
    checksum = hashlib.sha256(text).hexdigest()
    written = text.replace(b"Comment: x\n", b"Version: GnuPG v2\nComment: x\n")
    assert armor.fingerprint_by_checksum(written, checksum) == openpgp.fingerprint(BODY)
    with pytest.raises(openpgp.OpenPgpError, match="sha256"):
        armor.fingerprint_by_checksum(written.replace(b"x", b"y"), checksum)
    other = BODY[:4] + b"\x02" + BODY[5:]
    both = armored(OLD + bytes([0x98, len(other)]) + other)
    with pytest.raises(openpgp.OpenPgpError, match="2 keys"):
        armor.fingerprint_by_checksum(both, hashlib.sha256(both).hexdigest())
