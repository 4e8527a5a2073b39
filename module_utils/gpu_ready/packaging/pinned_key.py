"""The pinned key of a key file, and nothing beside it (RFC 4880 and RFC 9580).

Whoever serves a key file can put packets behind the pinned primary key. gpgv and newer rpm ignore a subkey that the
primary key did not sign; rpm before the fix of CVE-2021-3521 (4.11 of Enterprise Linux 7, the first of 8) trusts it.
"""

import hashlib
from typing import Iterator, List, NamedTuple, Optional, Tuple

from . import openpgp
from .openpgp import OpenPgpError, Packet

SIGNATURE, USER_ID, SUBKEY = 2, 13, 14
BINDING = 0x18
RSA = (1, 3)
ISSUER, ISSUER_FINGERPRINT = 16, 33
HASHES = {
    2: ("sha1", "3021300906052b0e03021a05000414"),
    8: ("sha256", "3031300d060960864801650304020105000420"),
    9: ("sha384", "3041300d060960864801650304020205000430"),
    10: ("sha512", "3051300d060960864801650304020305000440"),
    11: ("sha224", "302d300d06096086480165030402040500041c"),
}
"""Names and DigestInfo prefixes (RFC 8017, section 9.2) by OpenPGP's number. MD5 binds nothing."""


class Signature(NamedTuple):
    """A signature of version 4: ``hashed`` is the part that it covers itself, ``values`` are its numbers."""

    kind: int
    hash: int
    hashed: bytes
    issuers: List[str]
    values: bytes


def pick_key(data: bytes, pinned: str) -> bytes:
    """Return the key with the pinned fingerprint (spaces allowed) in binary form: user ids and its own subkeys only.

    OpenPgpError names the keys of the file if the pinned one is not among them.
    """
    name = "".join(pinned.split()).upper()
    found = openpgp.parse_keys(data)
    for key in found:
        if key.fingerprint == name:
            return keep_own_packets(key)
    raise OpenPgpError("it holds the key %s, expected is %s" % (" and ".join(key.fingerprint for key in found), name))


def keep_own_packets(key: openpgp.Key) -> bytes:
    """Return the primary key with its signatures, user ids with theirs, and the subkeys that it signed."""
    primary, *others = split_components(key.data)
    kept = [primary]
    for component in others:
        head = component[0]
        if head.tag == USER_ID or (head.tag == SUBKEY and is_bound(primary[0], component, key.fingerprint)):
            kept.append(component)
    return b"".join(packet.raw for component in kept for packet in component)


def split_components(data: bytes) -> Iterator[List[Packet]]:
    """Yield the primary key, and each thing behind it, with the signatures that follow."""
    found: List[Packet] = []
    for packet in openpgp.parse_packets(data):
        if packet.tag == SIGNATURE and found:
            found.append(packet)
            continue
        if found:
            yield found
        found = [packet]
    if found:
        yield found


def is_bound(primary: Packet, component: List[Packet], fingerprint: str) -> bool:
    """Return True if a signature after the subkey was made by the primary key.

    RSA signatures are verified. For other algorithms the named issuer counts: programs that support them verify the
    binding themselves.
    """
    subkey = component[0]
    for packet in component[1:]:
        signature = parse_signature(packet.body)
        if signature is None or signature.kind != BINDING:
            continue
        public = rsa_numbers(primary.body)
        if public is None:
            if any(fingerprint.endswith(one) or fingerprint.startswith(one) for one in signature.issuers):
                return True
        elif verify_rsa(public, signature, [primary.body, subkey.body]):
            return True
    return False


def parse_signature(body: bytes) -> Optional[Signature]:
    """Return a signature of version 4 or 6 (RFC 9580, section 5.2.3); None for another version or a damaged one."""
    if len(body) < 6 or body[0] not in (4, 6):
        return None
    width = 2 if body[0] == 4 else 4
    size = int.from_bytes(body[4 : 4 + width], "big")
    end = 4 + width + size
    other = int.from_bytes(body[end : end + width], "big")
    tail = end + width + other
    if tail + 2 > len(body):
        return None
    issuers = find_issuers(body[4 + width : end]) + find_issuers(body[end + width : tail])
    return Signature(body[1], body[3], body[:end], issuers, body[tail + 2 :])


def find_issuers(data: bytes) -> List[str]:
    """Return key ids and fingerprints of the issuer in a list of subpackets, in capital hexadecimal digits."""
    found, at = [], 0
    while at < len(data):
        first = data[at]
        if first < 192:
            size, at = first, at + 1
        elif first < 255:
            size, at = ((first - 192) << 8) + int.from_bytes(data[at + 1 : at + 2], "big") + 192, at + 2
        else:
            size, at = int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
        content = data[at : at + size]
        if content and content[0] & 0x7F == ISSUER and len(content) == 9:
            found.append(content[1:].hex().upper())
        elif content and content[0] & 0x7F == ISSUER_FINGERPRINT and len(content) in (22, 34):
            found.append(content[2:].hex().upper())
        at += max(size, 1)
    return found


def rsa_numbers(body: bytes) -> Optional[Tuple[int, int]]:
    """Return the modulus and exponent of an RSA key of version 4; None for other keys."""
    if len(body) < 8 or body[0] != 4 or body[5] not in RSA:
        return None
    modulus, rest = read_number(body[6:])
    exponent, _ = read_number(rest)
    return modulus, exponent


def read_number(data: bytes) -> Tuple[int, bytes]:
    """Return the number at the beginning (RFC 9580, section 3.2), and what follows it."""
    size = (int.from_bytes(data[:2], "big") + 7) // 8
    return int.from_bytes(data[2 : 2 + size], "big"), data[2 + size :]


def verify_rsa(public: Tuple[int, int], signature: Signature, keys: List[bytes]) -> bool:
    """Return True for an RSA signature of version 4 over key packets (RFC 9580, section 5.2.4.

    RFC 8017, section 8.2.2).
    """
    modulus, exponent = public
    width = (modulus.bit_length() + 7) // 8
    if signature.hashed[0] != 4 or signature.hash not in HASHES or exponent < 3 or width < 128:
        return False
    name, prefix = HASHES[signature.hash]
    total = hashlib.new(name)
    for body in keys:
        total.update(b"\x99" + len(body).to_bytes(2, "big") + body)
    total.update(signature.hashed + b"\x04\xff" + len(signature.hashed).to_bytes(4, "big"))
    digest = bytes.fromhex(prefix) + total.digest()
    number, _ = read_number(signature.values)
    expected = b"\x00\x01" + b"\xff" * (width - len(digest) - 3) + b"\x00" + digest
    return number < modulus and pow(number, exponent, modulus).to_bytes(width, "big") == expected
