"""Remedies for signatures that apt, dnf or rpm does not accept: "the signature is invalid" has many causes."""

import re

from .manager import WRONG_CLOCK, WRONG_SIGNATURE

CHANGES = ". It may also be in the middle of an update: run again later"
REMEDIES = (
    # Sequoia's policy (rpm of EL 9 and Fedora, sqv of apt 3; https://docs.rs/sequoia-policy-config).
    (
        r"not considered secure|Policy reject|No binding signature",
        "The policy of this host does not accept the algorithm of the signature or of the key any more: only its owner "
        "can sign again. Look for a newer key there",
    ),
    # apt-pkg/contrib/gpgv.cc and methods/gpgv.cc: the check itself could not be made.
    (
        r"is gpgv installed|Couldn't create temporary|Could not execute|not readable by user|unsupported filetype",
        "This host cannot check signatures: repair what the message names (the program gpgv, /tmp, rights of the key's "
        "file)",
    ),
    # "GPG error: ... Clearsigned file isn't valid, got 'NOSPLIT' (does the network require authentication?)"
    (
        r"Clearsigned file isn't valid|NOSPLIT|NODATA",
        "Something else than the repository's file was answered: by a proxy or a login page, or by a damaged mirror",
    ),
    (
        r"KEYEXPIRED|EXPKEYSIG|EXPSIG|[Kk]ey (?:has |is )?expired",
        "The key or the signature has expired: install the key as its owner renewed it. Or the clock of this host is "
        "wrong. " + WRONG_CLOCK,
    ),
    (
        r"NO_PUBKEY|Missing key|Signing key not found|NOKEY|[Pp]ublic key (?:for \S+ )?is not installed|"
        r"No corresponding key|Couldn't open file",
        "This host does not have that key for this source: its owner signs with a newer one, or the file that the "
        "source names (Signed-By, gpgkey) is another one, or cannot be read. Or the mirror serves something else",
    ),
    # rpm prints this also for a key that, by this host's clock, is not yet or no longer valid.
    (
        r"not correct for this package",
        WRONG_SIGNATURE + ". Or the clock of this host is wrong. " + WRONG_CLOCK,
    ),
    (r"BADSIG|BAD signature|Bad GPG signature", WRONG_SIGNATURE + CHANGES),
    (r"not signed", WRONG_SIGNATURE + ", or signs nothing there"),
    ("", WRONG_SIGNATURE + CHANGES),
)
"""By pattern; the first that matches counts."""


def signature_remedy(reported: str) -> str:
    return next(remedy for pattern, remedy in REMEDIES if re.search(pattern, reported))
