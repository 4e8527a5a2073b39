"""The answers of ELRepo's and Debian's nvidia-detect."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import TIMED_OUT, Result
from plugins.module_utils.gpu_ready.driver import nvidia_detect
from tests.unit.recorded import RecordedHost

P40 = "[10de:1b38] NVIDIA Corporation GP102GL [Tesla P40]\n"
NEEDS = "This device requires the {} NVIDIA driver {}\n"


def read(text: str) -> dict[str, Any]:
    return nvidia_detect.parse(text).as_dict()


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
        # Answers without the lines of their cards: each counts.
        (NEEDS.format("legacy 580.xx", "kmod-nvidia-580xx"), ("580xx", "580.xx", "kmod-nvidia-580xx")),
        (NEEDS.format("legacy 580.xx", "kmod-nvidia-580xx") + NEEDS.format("current 550.144.03", "kmod-nvidia"),
         (None, None, None)),
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
    checked = "".join(f"\nChecking card:  NVIDIA Corporation {name} (rev a1)\n{output}" for name, output in cards)
    return "Detected NVIDIA GPUs:\n" + listed + checked


GOOD = "Your card is supported by all driver versions.\nYour card is also supported by the Tesla 535 drivers series.\n"
TAKE = "It is recommended to install the\n    nvidia-driver\npackage.\n"
OLD = "Your card is only supported by the Tesla 470 drivers series, which is only available up to bookworm.\n"
T4, K80 = "TU104GL [Tesla T4] [10de:1eb8]", "GK210GL [Tesla K80] [10de:102d]"


def test_debian_with_the_open_module() -> None:
    output = GOOD + "Your card is also supported by the NVIDIA Linux Open GPU Kernel Module.\n" + TAKE
    found = read(debian((T4, output)))
    assert (found["support"], found["package"]) == (["all", "tesla-535", "open"], "nvidia-driver")
    assert found["nvidia"] == [{"slot": "00:00.0", "class": "0302", "device_id": "1eb8", "name": "TU104GL [Tesla T4]"}]


def test_debian_repeats_the_last_package_for_a_card_without_one() -> None:
    found = read(debian((K80, OLD + TAKE)))
    assert (found["support"], found["package"]) == (["tesla-470-only"], None)
    assert read(debian((T4, GOOD + TAKE), (K80, OLD + TAKE)))["package"] == "nvidia-driver"


@pytest.mark.parametrize(
    ("output", "support"),
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
def test_debian_support(output: str, support: list[str]) -> None:
    assert read(debian((T4, output)))["support"] == support


LAST = "Your card is only supported up to the 390 legacy drivers series.\n" + TAKE.replace(
    "driver", "legacy-390xx-driver"
)


def test_debian_of_old_recommends_a_legacy_package() -> None:
    found = read(debian((K80, LAST)))
    assert (found["support"], found["package"]) == (["legacy-390-only"], "nvidia-legacy-390xx-driver")


def test_debian_recommends_a_package_of_backports() -> None:
    output = "Your card is only supported by a newer driver that is available in jessie-backports.\n"
    found = read(debian((T4, output + TAKE.replace("driver", "driver/jessie-backports"))))
    assert (found["support"], found["package"]) == (["backports"], "nvidia-driver/jessie-backports")


def test_a_remark_after_a_name_is_not_part_of_it() -> None:
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


def test_debian_with_an_id() -> None:
    found = read(
        "Checking driver support for PCI ID [10de:2b85]\nYour card is not supported by any driver version up to 535.261.03.\n"
    )
    assert (found["nvidia"][0]["device_id"], found["newest_checked"]) == ("2b85", "535.261.03")


def test_debian_without_a_card_and_text_of_neither() -> None:
    assert read("No NVIDIA GPU detected.\n") == {"tool": "debian", "nvidia": [], "support": [], "package": None}
    assert read("hello")["tool"] is None


# --- regression test 3: the exit status is never read, text on stderr, blank lines, the last device wins ---------

T4_ID = "[10de:1eb8] NVIDIA Corporation TU104GL [Tesla T4]\n"
K40_ID = "[10de:1023] NVIDIA Corporation GK110BGL [Tesla K40m]\n"
PROBING = "Probing for supported NVIDIA devices...\n"
OPEN = NEEDS.format("current 595.91.07", "kmod-nvidia-open")


class Asked(RecordedHost):
    """A host whose nvidia-detect answers as recorded, without and with -v."""

    def __init__(self, terse: Result, verbose: Result) -> None:
        super().__init__(programs={("nvidia-detect",): terse, ("nvidia-detect", "-v"): verbose})


def verdict(rc: int, terse: str, verbose: str, err: str = "") -> nvidia_detect.DetectResult:
    return nvidia_detect.run_nvidia_detect(Asked(Result(rc, terse, err), Result(rc, PROBING + verbose, err)))


@pytest.mark.parametrize(
    ("rc", "terse", "verbose", "package"),
    [
        (1, "kmod-nvidia-open\n", T4_ID + OPEN, "kmod-nvidia-open"),
        (2, "kmod-nvidia\n", T4_ID + NEEDS.format("current 595.91.07", "kmod-nvidia"), "kmod-nvidia"),
        (11, "kmod-nvidia-580xx\n", P40 + NEEDS.format("legacy 580.xx", "kmod-nvidia-580xx"), "kmod-nvidia-580xx"),
        (10, "kmod-nvidia-470xx\n", K40_ID + NEEDS.format("legacy 470.xx", "kmod-nvidia-470xx"), "kmod-nvidia-470xx"),
        # Versions up to 550.144.03 (EL7) have other numbers: 8 was 470xx, and is 367xx today.
        (8, "kmod-nvidia-470xx\n", K40_ID + NEEDS.format("legacy 470.xx", "kmod-nvidia-470xx"), "kmod-nvidia-470xx"),
        (0, "kmod-nvidia-open\n", T4_ID + OPEN, "kmod-nvidia-open"),
    ],
)
def test_the_package_counts_and_the_exit_status_does_not(rc: int, terse: str, verbose: str, package: str) -> None:
    found = verdict(rc, terse, verbose)
    assert found.packages == [package]
    assert nvidia_detect.find_disagreement(found, [package], []) == ""
    assert package in nvidia_detect.find_disagreement(found, ["kmod-nvidia-xyz"], [])


def test_no_devices_on_stderr_is_a_disagreement() -> None:
    found = verdict(0, "", "", "No NVIDIA devices were found.\n")
    words = nvidia_detect.find_disagreement(found, ["kmod-nvidia-open"], ["10de:1eb8 Tesla T4"])
    assert "finds no NVIDIA device" in words and "kmod-nvidia-open for 10de:1eb8 Tesla T4" in words


def test_text_on_stderr_is_no_package() -> None:
    text = "This device does not appear to be supported at present\nAn Intel display controller was also detected\n"
    found = verdict(0, "\n", "[10de:3fff] NVIDIA Corporation Device\n", text)
    assert found.devices == [("10de:3fff Device", None)]
    assert "no package" in nvidia_detect.find_disagreement(found, ["kmod-nvidia-open"], [])


def test_a_blank_line_on_el10_is_a_device_without_a_package() -> None:
    found = verdict(10, "\n", K40_ID + "This device requires the legacy 470.xx NVIDIA driver \n")
    assert found.devices == [("10de:1023 GK110BGL [Tesla K40m]", None)]
    assert "GK110BGL [Tesla K40m]: no package" in nvidia_detect.find_disagreement(found, ["kmod-nvidia-470xx"], [])


def test_a_blank_line_of_a_program_that_lists_no_devices() -> None:
    found = nvidia_detect.run_nvidia_detect(Asked(Result(10, "\nkmod-nvidia-580xx\n", ""), Result(0, "", "")))
    assert found.devices == [("device 1", None), ("device 2", "kmod-nvidia-580xx")]


def test_the_last_device_does_not_decide_for_the_others() -> None:
    found = verdict(
        11,
        "kmod-nvidia-open\nkmod-nvidia-580xx\n",
        T4_ID + OPEN + P40 + NEEDS.format("legacy 580.xx", "kmod-nvidia-580xx"),
    )
    assert found.packages == ["kmod-nvidia-580xx", "kmod-nvidia-open"]
    words = nvidia_detect.find_disagreement(found, ["kmod-nvidia-580xx"], ["T4", "P40"])
    assert "Tesla T4]: kmod-nvidia-open" in words and "Tesla P40]: kmod-nvidia-580xx" in words
    assert nvidia_detect.find_disagreement(found, ["kmod-nvidia-580xx", "kmod-nvidia-open"], []) == ""


def test_debians_program_is_called_without_v() -> None:
    # It would read -v as a PCI ID; and it repeats the recommendation of the first card for the second.
    host = Asked(
        Result(0, debian((T4, GOOD + TAKE), (K80, OLD + TAKE)), ""), Result(2, "Error parsing PCI ID '-v'.", "")
    )
    found = nvidia_detect.run_nvidia_detect(host)
    assert host.asked == [("nvidia-detect",)]
    assert [package for _device, package in found.devices] == ["nvidia-driver", None]
    assert "Tesla K80]" in nvidia_detect.find_disagreement(found, ["nvidia-driver"], [])


def test_debian_without_a_gpu() -> None:
    found = nvidia_detect.run_nvidia_detect(Asked(Result(0, "No NVIDIA GPU detected.\n", ""), Result(2, "", "")))
    assert found.devices == [] and nvidia_detect.find_disagreement(found, ["nvidia-driver"], [])


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (RecordedHost(), "nvidia-detect is not installed"),
        (Asked(Result(TIMED_OUT, "", ""), Result(0, "", "")), "did not end within 60 s"),
        (Asked(Result(0, "", "Segmentation fault"), Result(0, "", "")), "finds no NVIDIA device"),
    ],
)
def test_a_program_that_fails_is_no_agreement(host: RecordedHost, words: str) -> None:
    assert words in nvidia_detect.find_disagreement(nvidia_detect.run_nvidia_detect(host), ["kmod-nvidia-open"], [])
