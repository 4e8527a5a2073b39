"""The lab's mirror declares what the catalog says of the vendors' repositories: no more, no less, nothing under another name.

The same comparison as tools/check.py, with the declarations in place of the indexes that are built from them.
"""

import functools

import pytest
from gpu_ready_lab import mirror, packages, rpms

from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.vendors import check, indexes
from plugins.plugin_utils.gpu_ready.vendors.check import CHANGED, MISSING, RIGHT
from plugins.plugin_utils.gpu_ready.vendors.indexes import Index, IndexedPackage, IndexUnread, Tree

pytestmark = pytest.mark.usefixtures("catalog_of_the_lab")


def index_of_debs(declared: list[packages.Package]) -> Index:
    paragraphs = [{"Package": one.name, "Version": one.version, **dict(one.fields)} for one in declared]
    text = "\n\n".join("\n".join(f"{key}: {value}" for key, value in one.items()) for one in paragraphs)
    return Index(indexes.parse_packages(text, "lab/mirror"), {})


def index_of_rpms(name: str, declared: list[rpms.Rpm]) -> Index:
    index = Index({}, {})
    for one in declared:
        index.packages.setdefault(one.name, []).append(IndexedPackage(one.name, f"{one.version}-{one.release}"))
    for module, rule in mirror.streams().items():
        if name in rule["repositories"]:
            documents = rpms.module_documents(module, rule, declared)
            found = [part["data"] for part in documents if part["document"] == "modulemd"]
            index.streams.setdefault(module, set()).update(str(data["stream"]) for data in found)
    return index


class Declarations(check.Checker):
    """Repositories as the lab declares them; Debian's own archive is the real one in the lab."""

    def __init__(self) -> None:
        super().__init__(Tree())
        self._debs, self._rpms = mirror.declared()

    @functools.cache  # noqa: B019  one lives as long as the module
    def repository(self, name: str) -> Index:
        entry = mirror.repositories().get(name)
        if entry is None:
            raise IndexUnread(f"the lab has no {name}")
        if entry.get("kind") == "rpm":
            return index_of_rpms(name, [one for one in self._rpms if name in one.repositories])
        return index_of_debs([one for one in self._debs if name in one.repositories])

    @functools.cache  # noqa: B019  as above
    def archive(self, distro: str) -> Index:
        return self.repository(distro)


@pytest.fixture(scope="module")
def checker() -> Declarations:
    return Declarations()


@pytest.mark.parametrize("distro", sorted(catalog.distros()))
def test_the_mirror_has_what_the_catalog_says(checker: Declarations, distro: str) -> None:
    rows = list(check.check_all(checker, [distro], with_files=False))
    assert [row for row in rows if row.state in (CHANGED, MISSING)] == []
    assert any(row.state == RIGHT for row in rows) or distro in (
        "fedora42",
        "fedora44",
        "ubuntu2004",
        "ubuntu2610",
    )  # without a repository in the lab
