"""OpenPGP public keys: armour, packets and fingerprints (RFC 4880 and RFC 9580), without gpg on the host."""

import base64
import binascii
import hashlib
from typing import Iterator, List, NamedTuple

PUBLIC_KEY = 6
ARMOR = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"
ARMOR_END = b"-----END PGP PUBLIC KEY BLOCK-----"


class OpenPgpError(Exception):
    """The bytes are no OpenPGP public key; the text describes what they are."""


class Packet(NamedTuple):
    """One packet: its type, its body, and its bytes with the header."""

    tag: int
    body: bytes
    raw: bytes


class Key(NamedTuple):
    """One primary key with all that belongs to it (user ids, subkeys, signatures)."""

    fingerprint: str
    data: bytes


def dearmor(data: bytes) -> bytes:
    """Return the binary form of a key; binary input is returned unchanged."""
    if ARMOR not in data:
        if data[:1] and data[0] & 0x80:
            return data
        raise OpenPgpError("it is no OpenPGP key (it begins with %r)" % data[:30].decode("latin-1"))
    found = b""
    for part in data.split(ARMOR)[1:]:
        body, end, _ = part.partition(ARMOR_END)
        if not end:
            raise OpenPgpError("its armour has no end: the download was cut short")
        lines = [line.strip() for line in body.replace(b"\r", b"").split(b"\n")]
        # Headers end at the first empty line; the line that begins with "=" is the checksum.
        text = lines[lines.index(b"", 1) + 1 :] if b"" in lines[1:] else lines
        encoded = b"".join(line for line in text if not line.startswith(b"="))
        try:
            found += base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise OpenPgpError("its armour is damaged") from None
    return found


def parse_packets(data: bytes) -> Iterator[Packet]:
    at = 0
    while at < len(data):
        start, head = at, data[at]
        at += 1
        if not head & 0x80:
            raise OpenPgpError("it is damaged at byte %d" % start)
        try:
            if head & 0x40:
                tag, first = head & 0x3F, data[at]
                if first < 192:
                    size, at = first, at + 1
                elif first < 224:
                    size, at = ((first - 192) << 8) + data[at + 1] + 192, at + 2
                elif first == 255:
                    size, at = int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
                else:
                    raise OpenPgpError("it is damaged at byte %d" % start)
            else:
                tag, width = (head >> 2) & 0x0F, 1 << (head & 3)
                size = int.from_bytes(data[at : at + width], "big") if width < 8 else len(data) - at
                at += width if width < 8 else 0
        except IndexError:
            raise OpenPgpError("it ends in the middle of a packet: the download was cut short") from None
        if at + size > len(data):
            raise OpenPgpError("it ends in the middle of a packet: the download was cut short")
        yield Packet(tag, data[at : at + size], data[start : at + size])
        at += size


def fingerprint(body: bytes) -> str:
    """Return the fingerprint of a public key packet in capital hexadecimal digits."""
    version = body[0] if body else 0
    if version == 4:
        return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()
    if version == 6:
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise OpenPgpError("it is a version %d key; versions 4 and 6 are read" % version)


def parse_keys(data: bytes) -> List[Key]:
    found = []  # type: List[Key]
    for packet in parse_packets(dearmor(data)):
        if packet.tag == PUBLIC_KEY:
            found.append(Key(fingerprint(packet.body), packet.raw))
        elif found:
            found[-1] = Key(found[-1].fingerprint, found[-1].data + packet.raw)
    if not found:
        raise OpenPgpError("it holds no public key")
    return found


def list_fingerprints(data: bytes) -> List[str]:
    """Return fingerprints of the primary keys of a file; [] where it holds no key that can be read."""
    try:
        return [key.fingerprint for key in parse_keys(data)]
    except OpenPgpError:
        return []
