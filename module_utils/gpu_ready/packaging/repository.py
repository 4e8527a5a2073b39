"""A third-party package repository, and the text of its files."""

from typing import Any, Dict, NamedTuple

APT_KEYRING = "/etc/apt/keyrings/%s.gpg"
APT_SOURCES = "/etc/apt/sources.list.d/%s.sources"
APT_PREFERENCES = "/etc/apt/preferences.d/%s.pref"
RPM_KEYRING = "/etc/pki/rpm-gpg/RPM-GPG-KEY-%s"
RPM_SOURCES = "/etc/yum.repos.d/%s.repo"


class Repository(NamedTuple):
    """A third-party repository. ``kind`` is ``deb`` or ``rpm``; some fields belong to one of the two.

    ``key_sha256`` pins the key's file where no complete ``fingerprint`` is published. ``list_file`` is the .sources or
    .repo file. ``pin`` is {package, pin, priority}, or a list of these. ``adopted``: an entry of the host that
    is used instead of one of its own, a file of apt or a section of dnf.
    """

    id: str
    kind: str
    url: str
    key_url: str
    fingerprint: str
    key_sha256: str
    keyring: str
    list_file: str
    suites: Any = "/"
    components: Any = ""
    pin: Any = None
    gpgcheck: bool = True
    repo_gpgcheck: bool = False
    adopted: str = ""

    @property
    def name(self) -> str:
        """The name of its files, and its section of a .repo file."""
        return "gpu-ready-" + self.id

    @property
    def section(self) -> str:
        """The section of dnf that serves it."""
        return self.adopted or self.name

    @property
    def preferences_file(self) -> str:
        return APT_PREFERENCES % self.name


def parse_repository(values: Dict[str, Any]) -> Repository:
    """Return a repository from a module's options or a step's parameters."""
    kind = str(values.get("kind") or "deb")
    name = "gpu-ready-" + str(values["id"])
    keyring, list_file = (RPM_KEYRING, RPM_SOURCES) if kind == "rpm" else (APT_KEYRING, APT_SOURCES)
    gpgcheck = values.get("gpgcheck")
    return Repository(
        id=str(values["id"]),
        kind=kind,
        url=str(values["url"]),
        key_url=str(values["key_url"]),
        fingerprint="".join(str(values.get("fingerprint") or "").split()).upper(),
        key_sha256=str(values.get("key_sha256") or ""),
        keyring=str(values.get("keyring") or keyring % name),
        list_file=str(values.get("list") or list_file % name),
        suites=values.get("suites") or "/",
        components=values.get("components") or "",
        pin=values.get("pin"),
        gpgcheck=gpgcheck is None or bool(gpgcheck),
        repo_gpgcheck=bool(values.get("repo_gpgcheck")),
        adopted=str(values.get("adopted") or ""),
    )


def join_words(value: Any) -> str:
    """Return a list, or a text, as words on one line."""
    return " ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value or "")


def format_deb822(repository: Repository, architecture: str) -> str:
    """Return the .sources file of a repository."""
    lines = [
        "# Written by gpu-ready; playbooks/uninstall.yml removes it.",
        "Types: deb",
        "URIs: " + repository.url,
        "Suites: " + join_words(repository.suites),
    ]
    if join_words(repository.components):
        lines.append("Components: " + join_words(repository.components))
    lines += ["Architectures: " + architecture, "Signed-By: " + repository.keyring]
    return "\n".join(lines) + "\n"


def format_preferences(values: Any) -> str:
    """Return the text of a preferences file from {package, pin, priority}, one or a list."""
    stanzas = [
        "Package: %s\nPin: %s\nPin-Priority: %s\n" % (join_words(value["package"]), value["pin"], value["priority"])
        for value in (values if isinstance(values, list) else [values])
    ]
    return "# Written by gpu-ready; playbooks/uninstall.yml removes it.\n\n" + "\n".join(stanzas)


def format_repo_file(repository: Repository) -> str:
    """Return the .repo file of a repository."""
    rows = [
        ("name", "gpu-ready: " + repository.id),
        ("baseurl", repository.url),
        ("enabled", "1"),
        ("gpgcheck", "1" if repository.gpgcheck else "0"),
        ("repo_gpgcheck", "1" if repository.repo_gpgcheck else "0"),
        ("gpgkey", "file://" + repository.keyring),
    ]
    text = "# Written by gpu-ready; uninstall.yml removes it.\n[%s]\n" % repository.name
    return text + "".join("%s=%s\n" % row for row in rows)
