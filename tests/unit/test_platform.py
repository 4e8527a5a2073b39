"""Reading os-release and finding the catalog's entry for a system."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion import os_family


@pytest.mark.parametrize(
    ("text", "identity", "version", "family"),
    [
        ("ID=debian\nVERSION_ID=12\n", "debian", "12", "debian"),
        ("\ufeffID='ol'\r\nVERSION_ID='8.10'\r\nID_LIKE=fedora\r\n", "ol", "8.10", "rhel"),
        ("# ID=no\n  ID = x\n\nID=sles # service pack\nVERSION_ID=\"15.7\"\n", "sles", "15.7", "suse"),
        ("ID=fedora\nID=rocky\nVERSION_ID=9.6\nROCKY_VERSION_ID=1\n", "rocky", "9.6", "rhel"),
        ('UBUNTU_VERSION_ID="24.04"\nDISTRIB_ID=Ubuntu\nID=arch\n', "arch", None, "other"),
        ('ID=newbuild\nID_LIKE="rhel centos fedora"\nVERSION_ID="10.1"\n', "newbuild", "10.1", "rhel"),
        ('ID=spin\nID_LIKE="rhel fedora"\nVERSION_ID=43\n', "spin", "43", "fedora"),
        ('ID=spin\nID_LIKE="rhel fedora"\nPLATFORM_ID="platform:f44"\n', "spin", None, "fedora"),
        ('ID=amzn\nID_LIKE="fedora"\nVERSION_ID="2023"\n', "amzn", "2023", "amazon"),
        ('ID=mageia\nID_LIKE="mandriva fedora"\nVERSION_ID=9\n', "mageia", "9", "other"),
        ('ID=zorin\nID_LIKE="ubuntu debian"\nVERSION_ID="17"\n', "zorin", "17", "debian"),
        ('ID="openEuler"\nVERSION_ID="24.03"\n', "openEuler", "24.03", "other"),
        ('NAME="Say \\"x\\""\nID=\nVERSION_ID=""\n', "", "", "other"),
        ("", None, None, "other"),
        ("VERSION_ID=12\n", None, "12", "other"),
        ('ID="anolis"\nVERSION_ID="23"\nPLATFORM_ID="platform:an23"\n', "anolis", "23", "other"),
        ('ID="anolis"\nVERSION_ID="8.9"\nID_LIKE="rhel fedora centos"\n', "anolis", "8.9", "rhel"),
        ('ID=qubes\nID_LIKE="rhel centos fedora"\nVERSION_ID=4.2\n', "qubes", "4.2", "fedora"),
        ('ID=uos\nVERSION_ID="20"\n', "uos", "20", "debian"),
        ('ID=uos\nVERSION_ID="20"\nPLATFORM_ID="platform:uelc20"\n', "uos", "20", "other"),
        ('ID=spin\nID_LIKE=spin\nDEBIAN_CODENAME=trixie\n', "spin", None, "debian"),
        ('n07: ID="rocky"\nn07: VERSION_ID="9.6"\n', "rocky", "9.6", "rhel"),
        ('"stdout_lines": [\n  "NAME=\\"Rocky\\"",\n  "ID=\\"rocky\\"",\n  "VERSION_ID=\\"9.6\\""\n', "rocky", "9.6", "rhel"),
        ('"stdout": "NAME=\\"A B\\"\\nID=\\"ol\\"\\nVERSION_ID=\\"9.6\\""', "ol", "9.6", "rhel"),
        ('| ID=sles\n| VERSION_ID="15.7"\t\tthe version\n', "sles", "15.7", "suse"),
    ],
)  # fmt: skip
def test_parse_as_a_shell_does(text: str, identity: str | None, version: str | None, family: str) -> None:
    found = os_family.read_os_release(text)
    assert (found.id, found.version_id, found.family) == (identity, version, family)


def test_escapes_and_empty_values() -> None:
    found = os_family.read_os_release('PRETTY_NAME="A \\$5 \\"b\\" \\\\ c"\nVERSION_CODENAME=\nVERSION_ID=rolling\n')
    assert (found.pretty, found.version_codename, found.major) == ('A $5 "b" \\ c', "", None)


@pytest.mark.parametrize(
    ("text", "treat_as", "key"),
    [
        ("ID=debian\nVERSION_ID=12", None, "debian12"),
        ("ID=debian\nVERSION_ID=13", None, "debian13"),
        ("ID=debian\nVERSION_ID=11", None, None),
        ("ID=raspbian\nID_LIKE=debian\nVERSION_ID=12", None, None),
        ("ID=raspbian\nID_LIKE=debian\nVERSION_ID=12", "debian12", "debian12"),
        ("ID=debian\nVERSION_ID=12", "debian99", "debian12"),
        ("ID=debian\nVERSION_ID=12", "el9", "debian12"),
        ("ID=debian\nVERSION_ID=11", "debian99", None),
        ("", None, None),
    ],
)
def test_only_known_systems_are_resolved(text: str, treat_as: str | None, key: str | None) -> None:
    assert os_family.resolve(os_family.read_os_release(text), treat_as) == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("ID=centos\nVERSION_ID=7", "centos7"),
        ("ID=rhel\nVERSION_ID=7.9", "centos7"),
        ("ID=ol\nVERSION_ID=7.9", "centos7"),
        ("ID=centos\nVERSION_ID=8", "el8"),
        ("ID=rhel\nVERSION_ID=8.10", "el8"),
        ("ID=almalinux\nVERSION_ID=8.10", "el8"),
        ("ID=rocky\nVERSION_ID=9.6", "el9"),
        ("ID=centos\nVERSION_ID=9", "el9"),
        ("ID=ol\nVERSION_ID=9.5", "el9"),
        ("ID=centos\nVERSION_ID=10", "el10"),
        ("ID=rhel\nVERSION_ID=10.1", "el10"),
        ("ID=eurolinux\nVERSION_ID=9.5", "el9"),
        ("ID=rhel\nVERSION_ID=6.10", None),
        ("ID=rhel\nVERSION_ID=90", None),
        ("ID=fedora\nVERSION_ID=43", "fedora43"),
        ("ID=fedora\nVERSION_ID=40", None),
        ("ID=fedora\nVERSION_ID=43\nVARIANT_ID=server", "fedora43"),
        ("ID=fedora\nVERSION_ID=43\nVARIANT_ID=silverblue", None),
        ("ID=nobara\nVERSION_ID=43", None),
        ("ID=amzn\nVERSION_ID=2023", "amzn2023"),
        ("ID=amzn\nVERSION_ID=2", None),
        ("ID=amzn\nVERSION_ID=2018.03", None),
        ("ID=ubuntu\nVERSION_ID=24.04\nVERSION_CODENAME=noble", "ubuntu2404"),
        ("ID=ubuntu\nVERSION_ID=24.10\nVERSION_CODENAME=oracular", None),
        ("ID=ubuntu\nVERSION_ID=18.04", None),
        ("ID=linuxmint\nVERSION_ID=22.1\nVERSION_CODENAME=xia\nUBUNTU_CODENAME=noble", "ubuntu2404"),
        ("ID=linuxmint\nVERSION_ID=6\nVERSION_CODENAME=faye\nDEBIAN_CODENAME=bookworm", "debian12"),
        ("ID=pop\nVERSION_ID=22.04\nVERSION_CODENAME=jammy\nUBUNTU_CODENAME=jammy", "ubuntu2204"),
        ("ID=zorin\nVERSION_ID=18\nUBUNTU_CODENAME=noble", "ubuntu2404"),
        ("ID=elementary\nVERSION_ID=8\nUBUNTU_CODENAME=noble", "ubuntu2404"),
        ("ID=neon\nVERSION_ID=24.04\nUBUNTU_CODENAME=noble", "ubuntu2404"),
        ("ID=linuxmint\nVERSION_ID=19\nUBUNTU_CODENAME=bionic", None),
        ("ID=raspbian\nVERSION_ID=12\nVERSION_CODENAME=bookworm", None),
        ("ID=devuan\nVERSION_ID=5\nVERSION_CODENAME=daedalus", None),
        ("ID=kali\nVERSION_ID=2025.4\nVERSION_CODENAME=kali-rolling", None),
        ("ID=anolis\nVERSION_ID=8.9", "el8"),
        ("ID=anolis\nVERSION_ID=23", None),
        ('ID="openEuler"\nVERSION_ID=24.03', None),
        ("ID=tencentos\nVERSION_ID=4.2", None),
        ("ID=kylin\nVERSION_ID=V10", None),
        ("ID=sles\nVERSION_ID=15.7", None),
        ("ID=ubuntu", None),
    ],
)  # fmt: skip
def test_a_system_counts_as_itself_or_as_its_known_parent(text: str, key: str | None) -> None:
    assert os_family.resolve(os_family.read_os_release(text)) == key


@pytest.mark.parametrize("key", catalog.distros())
def test_a_distribution_is_found_by_its_names_and_a_derivative_by_its_code_name(key: str) -> None:
    data = catalog.distro(key)
    for identity in data["ids"]:
        for version in data["versions"]:
            found = os_family.read_os_release(f"ID={identity}\nVERSION_ID={version}")
            assert (os_family.resolve(found), found.family) == (key, data["family"])
    if "codename" in data:
        mint = os_family.read_os_release(f"ID=linuxmint\nVERSION_ID=99\nUBUNTU_CODENAME={data['codename']}")
        assert os_family.resolve(mint) == key


def test_no_system_is_listed_twice() -> None:
    listed = [
        (identity, version)
        for key in catalog.distros()
        for data in [catalog.distro(key)]
        for identity, versions in [(name, data["versions"]) for name in data["ids"]]
        + list(data.get("relatives", {}).items())
        for version in versions
    ]
    assert len(listed) == len(set(listed))


@given(st.text(alphabet=st.sampled_from("ID_VERSON=\"'\\ \n#x19.\r"), max_size=80))
def test_any_text_is_read(text: str) -> None:
    found = os_family.read_os_release(text)
    assert found.family in {*catalog.families()["families"], "other"}
    os_family.resolve(found)
