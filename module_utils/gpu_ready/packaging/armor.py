"""The armour of OpenPGP keys as it is written, and keys that are pinned by their armoured file."""

import base64
import hashlib

from .openpgp import ARMOR, ARMOR_END, OpenPgpError, parse_keys


def armor(data: bytes) -> bytes:
    """Return a binary key in armour, which rpm requires (RFC 9580, section 6)."""
    text = base64.b64encode(data).decode("ascii")
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    total = base64.b64encode(crc24(data).to_bytes(3, "big")).decode("ascii")
    body = "".join(line + "\n" for line in ["", *lines, "=" + total])
    return ARMOR + b"\n" + body.encode("ascii") + ARMOR_END + b"\n"


def crc24(data: bytes) -> int:
    """Return the checksum of armour (RFC 9580, section 6.1.1)."""
    value = 0xB704CE
    for byte in data:
        value ^= byte << 16
        for _ in range(8):
            value <<= 1
            if value & 0x1000000:
                value ^= 0x1864CFB
    return value


def fingerprint_by_checksum(data: bytes, sha256: str) -> str:
    """Return the fingerprint of the only key in an armoured file whose checksum is pinned.

    The checksum covers the text without its ``Version:`` lines, which programs write as they like.
    """
    lines = [line for line in data.splitlines(True) if not line.startswith(b"Version")]
    found = hashlib.sha256(b"".join(lines)).hexdigest()
    if found != sha256.lower():
        raise OpenPgpError("its sha256 is %s, expected is %s" % (found, sha256.lower()))
    (*others, key) = parse_keys(data)
    if others:
        raise OpenPgpError("it holds %d keys, expected is one" % (len(others) + 1))
    return key.fingerprint
