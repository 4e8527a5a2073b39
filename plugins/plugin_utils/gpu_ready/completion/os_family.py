"""Which system an os-release is: its family by catalog/families.yml, and the catalog's entry for it."""

import re
from typing import Any

from ....module_utils.gpu_ready.facts.model import BaseFacts
from ....module_utils.gpu_ready.system import os_release
from ....module_utils.gpu_ready.system.model import OsRelease
from ..catalog import model as catalog


def read_os_release(text: str) -> OsRelease:
    """Return the record of an os-release file, with family and base."""
    values = os_release.parse_values(text)
    found = os_release.parse_release(values)
    return found._replace(family=find_family(found, values), base=find_base(found, values))


def find_family(release: OsRelease, values: dict[str, str]) -> str:
    """Return the family by the rules of catalog/families.yml; "other" where none holds."""
    rules = catalog.families()
    identity = (release.id or "").lower()
    likes = [word.lower() for word in release.id_like]
    if (release.platform_id or "").startswith(tuple(rules["blocked_platforms"])):
        return "other"
    for name, rule in rules["families"].items():
        if identity in rule["ids"]:
            return str(name)
    found = family_by_platform(release.platform_id or "", rules) or family_by_likes(likes, rules)
    if found is None:
        keyed = [
            name for name, rule in rules["families"].items() if any(values.get(key) for key in rule.get("keys", []))
        ]
        found = str(keyed[0]) if keyed else None
    if found is None:
        return "other"
    rule = rules["families"][found]
    limit = rule.get("not_from")
    return str(rule["else"]) if limit and release.major and int(release.major) >= limit else found


def family_by_platform(platform_id: str, rules: dict[str, Any]) -> str | None:
    match = re.match(r"^platform:([a-z]+)\d", platform_id)
    for name, rule in rules["families"].items():
        if match and rule.get("platform") == match.group(1):
            return str(name)
    return None


def family_by_likes(likes: list[str], rules: dict[str, Any]) -> str | None:
    if set(likes) & set(rules["blocked"]):
        return None
    for name, rule in rules["families"].items():
        if set(likes) & set(rule["like"]):
            return str(name)
    return None


def find_base(release: OsRelease, values: dict[str, str]) -> str | None:
    bases = catalog.families()["bases"]
    own = next((key for key in ("DEBIAN_CODENAME", "UBUNTU_CODENAME", "VERSION_CODENAME") if values.get(key)), None)
    named = bases.get(values[own]) if own else None
    return None if named is None or named.split()[0] == (release.id or "").lower() else str(named)


def resolve(release: OsRelease, treat_as: str | None = None, manager: str | None = None) -> str | None:
    """Return the catalog's key of a system; ``treat_as``: the operator's choice for one that it does not have.

    A system counts as itself first, then as the base of a known relative, then as its base by code name. An image
    (Fedora Silverblue) counts as none: packages are not installed into it one by one.
    """
    if is_image(release):
        return None
    identity = (release.id or "").lower()
    found = find_by_id(identity, release.version_id, "ids") or find_by_id(identity, release.version_id, "relatives")
    if not found and release.base and identity in catalog.families()["followers"]:
        name, version = release.base.split()[:2]
        found = find_by_id(name, version, "ids")
    return found or (treat_as if treat_as in similar(release, manager) else None)


def is_image(release: OsRelease) -> bool:
    return release.variant_id in catalog.families()["image_variants"]


def similar(release: OsRelease, manager: str | None = None) -> list[str]:
    """Return the distributions of the same package family, as which an unknown system may be treated.

    The first ID that a distribution of this family has decides: of the system, of its base, then of ID_LIKE.
    ``manager``: the package manager of the system, None where it is not known.
    """
    family = {key: catalog.distro(key) for key in catalog.distros() if catalog.distro(key)["family"] == release.family}
    names = [(release.id or "").lower(), (release.base or "").split(" ")[0]] + [
        word.lower() for word in release.id_like
    ]
    named = [name for name in names if any(name in data["ids"] for data in family.values())]
    return [
        key
        for key, data in sorted(family.items())
        if not is_image(release)
        and (not named or named[0] in data["ids"])
        and manager in (None, data["package_manager"])
    ]


def find_by_id(identity: str, version: str | None, name: str) -> str | None:
    """Return the key of the distribution that lists an ID with this version in its ``ids`` or its ``relatives``."""
    for key in catalog.distros():
        data = catalog.distro(key)
        versions = data["versions"] if name == "ids" else data.get("relatives", {}).get(identity, [])
        if (name == "relatives" or identity in data["ids"]) and any(is_within(version, one) for one in versions):
            return key
    return None


def served_by_nvidia(release: OsRelease) -> dict[str, Any] | None:
    """Return the row of a system that NVIDIA has a repository for, and whose packages the catalog does not know."""
    identity = (release.id or "").lower()
    rows: list[dict[str, Any]] = catalog.families()["served_by_nvidia"]
    fitting = [row for row in rows if identity in row["ids"]]
    return next((row for row in fitting if any(is_within(release.version_id, one) for one in row["versions"])), None)


def distribution_name(base: BaseFacts) -> str:
    known = catalog.distro(base.distro)["pretty"] if base.distro else base.os.pretty or base.os.id or "unknown system"
    return str(known).split(" (")[0]  # without the code name


def is_within(version: str | None, listed: str) -> bool:
    """Return True if a VERSION_ID is the listed version or one of its minor versions ("9.6" of "9")."""
    return ((version or "") + ".").startswith(listed + ".")
