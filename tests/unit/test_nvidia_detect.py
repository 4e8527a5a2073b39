"""The answers of ELRepo's and Debian's nvidia-detect."""

from typing import Any

import pytest
from gpu_ready import nvidia_detect

P40 = "[10de:1b38] NVIDIA Corporation GP102GL [Tesla P40]\n"
NEEDS = "This device requires the {} NVIDIA driver {}\n"


def read(text: str) -> dict[str, Any]:
    return nvidia_detect.read(text).as_dict()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (P40 + NEEDS.format("legacy 580.xx", "kmod-nvidia-580xx"), ("580xx", "580.xx", "kmod-nvidia-580xx")),
        (P40 + "This device requires the legacy 580.xx NVIDIA\ndriver kmod-nvidia-580xx\n",
         ("580xx", "580.xx", "kmod-nvidia-580xx")),
        (P40 + NEEDS.format("legacy 96.43.xx", ""), ("96xx", "96.43.xx", None)),
        (P40 + NEEDS.format("current 550.144.03", "kmod-nvidia\r"), ("current", "550.144.03", "kmod-nvidia")),
        ("kmod-nvidia-470xx\n", ("470xx", None, "kmod-nvidia-470xx")),
        ("kmod-nvidia-open\nkmod-nvidia-open\n", ("current", None, "kmod-nvidia-open")),
        ("kmod-nvidia-open\nkmod-nvidia-580xx\n", (None, None, None)),
        (P40 + "This device does not appear to be supported at present\n", (None, None, None)),
        ("No NVIDIA devices were found.\n", (None, None, None)),
    ],
)  # fmt: skip
def test_elrepo(text: str, answer: tuple[str | None, ...]) -> None:
    found = read(text)
    assert found["tool"] == "elrepo"
    assert (found["branch"], found["driver_version"], found["package"]) == answer


def test_elrepo_with_an_unsupported_card_beside_a_supported_one() -> None:
    text = P40 + NEEDS.format("legacy 580.xx", "kmod-nvidia-580xx") + "[10de:3fff] NVIDIA Corporation Device\n"
    found = read(text + "This device does not appear to be supported at present\n")
    assert (found["branch"], found["package"]) == (None, None)
    assert [card["branch"] for card in found["nvidia"]] == ["580xx", None]


def debian(*cards: tuple[str, str]) -> str:
    listed = "".join(
        f"0{n}:00.0 3D controller [0302]: NVIDIA Corporation {name} (rev a1)\n" for n, (name, _) in enumerate(cards)
    )
    checked = "".join(f"\nChecking card:  NVIDIA Corporation {name} (rev a1)\n{said}" for name, said in cards)
    return "Detected NVIDIA GPUs:\n" + listed + checked


GOOD = "Your card is supported by all driver versions.\nYour card is also supported by the Tesla 535 drivers series.\n"
TAKE = "It is recommended to install the\n    nvidia-driver\npackage.\n"
OLD = "Your card is only supported by the Tesla 470 drivers series, which is only available up to bookworm.\n"
T4, K80 = "TU104GL [Tesla T4] [10de:1eb8]", "GK210GL [Tesla K80] [10de:102d]"


def test_debian_with_the_open_module() -> None:
    said = GOOD + "Your card is also supported by the NVIDIA Linux Open GPU Kernel Module.\n" + TAKE
    found = read(debian((T4, said)))
    assert (found["support"], found["package"]) == (["all", "tesla-535", "open"], "nvidia-driver")
    assert found["nvidia"] == [{"slot": "00:00.0", "class": "0302", "device_id": "1eb8", "name": "TU104GL [Tesla T4]"}]


def test_debian_repeats_the_last_package_for_a_card_without_one() -> None:
    found = read(debian((K80, OLD + TAKE)))
    assert (found["support"], found["package"]) == (["tesla-470-only"], None)
    assert read(debian((T4, GOOD + TAKE), (K80, OLD + TAKE)))["package"] == "nvidia-driver"


@pytest.mark.parametrize(
    ("said", "support"),
    [
        ("Your card is supported by the default drivers.\n", ["default"]),
        ("Your card is supported by the default drivers and legacy driver series 390.\n", ["default", "legacy-390"]),
        ("Your card is only supported by the legacy 390xx drivers series.\n", ["legacy-390-only"]),
        ("Your card is only supported by a newer driver that is available in jessie-backports.\n", ["backports"]),
        ("Uh oh. Your card is only supported by the 71.86 legacy drivers series, which is not in any current Debian suite.\n",
         ["legacy-71.86-only"]),
        ("Your card is only supported by the 390 legacy drivers series, which is only available up to bullseye.\n",
         ["legacy-390-only"]),
        ("Uh oh. Your card is not supported by any driver version up to 550.163.01.\nA newer driver may add support.\n", []),
    ],
)  # fmt: skip
def test_debian_support(said: str, support: list[str]) -> None:
    assert read(debian((T4, said)))["support"] == support


LAST = "Your card is only supported up to the 390 legacy drivers series.\n" + TAKE.replace(
    "driver", "legacy-390xx-driver"
)


def test_debian_of_old_recommends_a_legacy_package() -> None:
    found = read(debian((K80, LAST)))
    assert (found["support"], found["package"]) == (["legacy-390-only"], "nvidia-legacy-390xx-driver")


def test_debian_recommends_a_package_of_backports() -> None:
    said = "Your card is only supported by a newer driver that is available in jessie-backports.\n"
    found = read(debian((T4, said + TAKE.replace("driver", "driver/jessie-backports"))))
    assert (found["support"], found["package"]) == (["backports"], "nvidia-driver/jessie-backports")


def test_a_remark_behind_a_name_is_no_part_of_it() -> None:
    text = P40.replace("\n", "      ### this one\n") + NEEDS.format("current 390.25", "kmod-nvidia  ### and its driver")
    found = read(text)
    assert (found["nvidia"][0]["name"], found["package"]) == ("GP102GL [Tesla P40]", "kmod-nvidia")


def commented(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines())


def listed(text: str) -> str:
    return "".join(f'  "{line}",\n' for line in text.splitlines())


@pytest.mark.parametrize(
    "change",
    [
        commented,
        listed,
        lambda text: commented(text).replace("#", ">"),
        lambda text: commented(text).replace("#", "n7:"),
        lambda text: '"stdout": "' + text.replace("\n", "\\n") + '"',
        lambda text: text.replace("Tesla T4] [", "Tesla\nT4] ["),
        lambda text: text.replace("NVIDIA Corporation", "\x1b[01;31mNVIDIA\x1b[m Corporation"),
    ],
)  # fmt: skip
def test_debian_in_every_form(change: Any) -> None:
    found = read(change(debian((T4, GOOD + TAKE))))
    assert [(card["slot"], card["device_id"], card["name"]) for card in found["nvidia"]] == [
        ("00:00.0", "1eb8", "TU104GL [Tesla T4]")
    ]
    assert (found["support"], found["package"]) == (["all", "tesla-535"], "nvidia-driver")


def test_debian_that_does_not_know_its_suite() -> None:
    found = read(debian((T4, "Uh oh. Failed to identify your Debian suite.\n")))
    assert (len(found["nvidia"]), found["support"], found["package"]) == (1, [], None)
    (card,) = read("Checking card:  NVIDIA Corporation TU104GL [Tesla T4] (rev a1)\n" + GOOD)["nvidia"]
    assert (card["device_id"], card["name"]) == (None, "TU104GL [Tesla T4]")


def test_debian_asked_for_an_id() -> None:
    found = read(
        "Checking driver support for PCI ID [10de:2b85]\nYour card is not supported by any driver version up to 535.261.03.\n"
    )
    assert (found["nvidia"][0]["device_id"], found["newest_checked"]) == ("2b85", "535.261.03")


def test_debian_without_a_card_and_text_of_neither() -> None:
    assert read("No NVIDIA GPU detected.\n") == {"tool": "debian", "nvidia": [], "support": [], "package": None}
    assert read("hello")["tool"] is None
