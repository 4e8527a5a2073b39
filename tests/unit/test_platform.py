"""Reading os-release and finding the catalog's entry for a system."""

import pytest
from gpu_ready import catalog, platform
from hypothesis import given
from hypothesis import strategies as st


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
def test_it_is_read_as_a_shell_reads_it(text: str, identity: str | None, version: str | None, family: str) -> None:
    found = platform.read_os_release(text)
    assert (found.id, found.version_id, found.family) == (identity, version, family)


def test_escapes_and_empty_values() -> None:
    found = platform.read_os_release('PRETTY_NAME="A \\$5 \\"b\\" \\\\ c"\nVERSION_CODENAME=\nVERSION_ID=rolling\n')
    assert (found.pretty, found.version_codename, found.major) == ('A $5 "b" \\ c', "", None)


@pytest.mark.parametrize(
    ("text", "treat_as", "key"),
    [
        ("ID=debian\nVERSION_ID=12", None, "debian12"),
        ("ID=debian\nVERSION_ID=13", None, "debian13"),
        ("ID=debian\nVERSION_ID=11", None, None),
        ("ID=raspbian\nID_LIKE=debian\nVERSION_ID=12", None, None),
        ("ID=raspbian\nID_LIKE=debian\nVERSION_ID=12", "debian12", "debian12"),
        ("ID=debian\nVERSION_ID=12", "debian99", None),
        ("", None, None),
    ],
)
def test_only_known_systems_are_resolved(text: str, treat_as: str | None, key: str | None) -> None:
    assert platform.resolve(platform.read_os_release(text), treat_as) == key


@given(st.text(alphabet=st.sampled_from("ID_VERSON=\"'\\ \n#x19.\r"), max_size=80))
def test_any_text_is_read(text: str) -> None:
    found = platform.read_os_release(text)
    assert found.family in {*catalog.families()["families"], "other"}
    platform.resolve(found)
