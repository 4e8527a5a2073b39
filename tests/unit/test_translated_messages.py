"""Messages of package managers in other languages (catalog/translations.yml)."""

import re
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready.diagnostics import installer_log, messages

from tools import compile_catalog, translations

ROOT = Path(__file__).resolve().parents[2]
ROWS = yaml_load((ROOT / "catalog/translations.yml").read_text(encoding="utf-8"))["messages"]
TEXTS = [(row, language, row[language]) for row in ROWS for language in translations.LANGUAGES if row.get(language)]
ARGUMENTS = {"kernel_headers_missing": "linux-headers-6.1.0-9-amd64", "package_unknown": "nvidia-driver-580"}


def filled(row: dict[str, Any], text: str) -> str:
    """A message as the program prints it."""
    return compile_catalog.PLACEHOLDER.sub(lambda _: ARGUMENTS.get(row["code"], "/var/lib/x-1"), text)


@pytest.mark.parametrize(
    ("row", "language", "text"), TEXTS, ids=lambda value: None if isinstance(value, dict) else None
)
def test_a_translated_message_has_the_cause_of_its_original(row: dict[str, Any], language: str, text: str) -> None:
    if compile_catalog.translated(text, row.get("argument")) is None:
        pytest.skip("too few words to be recognised")
    log = f"# apt-get install nvidia-driver\n{filled(row, text)}\n"
    if row["code"] == "complete":
        assert installer_log.read(log)["complete"]
        return
    assert row["code"] in [found.code for found in messages.explain("installer-log", log)], log


CASES: list[tuple[str, list[str]]] = [
    (
        "E: Sperre /var/lib/dpkg/lock-frontend konnte nicht erlangt werden. Es wird von Prozess 4312 (unattended-upgr) gehalten.\n"
        "N: Bitte beachten Sie, dass das Entfernen der Sperrdatei keine Lösung ist und Ihr System zerstören könnte.\n"
        "E: Erlangen der Sperre für die Dpkg-Oberfläche (/var/lib/dpkg/lock-frontend) nicht möglich; wird sie von einem anderen Prozess verwendet?\n",
        ["package_manager_busy"],
    ),
    (
        "Les paquets suivants contiennent des dépendances non satisfaites\u00a0:\n"
        " nvidia-driver : Dépend: nvidia-kernel-dkms (= 580.95.05-1) mais ne sera pas installé\n"
        "E: Impossible de corriger les problèmes, des paquets défectueux sont en mode «\u00a0garder en l'état\u00a0».\n",
        ["packages_conflict"],
    ),
    ("E: dpkg se interrumpió la ejecución de dpkg, debe ejecutar manualmente «dpkg --configure -a» para corregir el problema\n", ["package_manager_interrupted"]),
    (
        "W: GPG 错误：https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64  InRelease: 由于没有公钥，无法验证下列签名： NO_PUBKEY A4B469963BF863CC\n"
        "E: 仓库 “https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64  InRelease” 没有数字签名。\n",
        ["repository_key"],
    ),
    ("E: http://mirror.example.org/debian/pool/non-free/n/nvidia/x.deb の取得に失敗しました  404  Not Found [IP: 192.0.2.1 80]\n", ["download_failed"]),
    ("tar: ./usr/lib/libcuda.so: Kann nicht schreiben: Auf dem Gerät ist kein Speicherplatz mehr verfügbar\n", ["no_space"]),
    (
        "错误：\n 问题: 软件包 kmod-nvidia-580 需要 kernel >= 5.14.0-570，但没有提供者可以被安装\n  - 冲突的请求\n",
        ["packages_conflict"],
    ),
    ("E: Paket linux-headers-6.1.0-9-amd64 kann nicht gefunden werden.\n", ["kernel_headers_missing"]),
    ("E: Impossible de trouver le paquet nvidia-driver-580\n", ["package_unknown"]),
    # The English originals are patterns too; a part of apt's output without its heading.
    ("E: Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution).\n", ["packages_conflict"]),
    # Of another package: nothing that gpu-ready knows.
    ("E: Paket vlc kann nicht gefunden werden.\n", []),
]  # fmt: skip


@pytest.mark.parametrize(("log", "codes"), CASES)
def test_an_output_in_another_language(log: str, codes: list[str]) -> None:
    answer = installer_log.read(log)
    assert [found.code for found in messages.explain("installer-log", log)] == codes
    assert answer["installer_failed"] is True


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (" cuda-drivers : Depends: libnvidia-gl-418 (>= 418.40.04) but it is not going to be installed\n", "packages_conflict"),
        (" nvidia-dkms-530 : Depends: nvidia-kernel-common-530 (>= 530.41.03) but 530.30.02-0ubuntu1 is to be installed\n", "packages_conflict"),
        (" xserver-xorg-video-nvidia-495 : PreDepends: xorg-video-abi-24 but it is not installable or\n", "packages_conflict"),
        ("Resolving Linux kernel version...\nCould not resolve Linux kernel version\n", "kernel_headers_missing"),
        ("NOTE: Skipping kernel installation since no kernel module package kmod-nvidia-470.57.02-4.18.0-305.17.1 for kernel version "
         "4.18.0-305.17.1.el8_4 and NVIDIA driver 470.57.02 could be found\nError:\n Problem 1: package kernel-core-4.18.0-305.17.1.el8_4.x86_64 "
         "is filtered out by exclude filtering\n", "precompiled_module_missing"),
    ],
)  # fmt: skip
def test_a_part_of_an_output_without_its_heading(log: str, code: str) -> None:
    assert messages.explain("installer-log", log)[0].code == code


def test_the_package_of_a_failure_of_dpkg_is_named_in_any_language() -> None:
    log = "dpkg: Fehler beim Bearbeiten des Paketes nvidia-kernel-dkms (--configure):\n Unterprozess beendet\n"
    answer = installer_log.read(log)
    assert (answer["package"], answer["installer_failed"]) == ("nvidia-kernel-dkms", True)
    assert (
        installer_log.read("dpkg: 处理软件包 nvidia-dkms-580 (--configure)时出错：\n")["package"] == "nvidia-dkms-580"
    )


def test_entries_of_a_po_file() -> None:
    text = (
        'msgid ""\nmsgstr "Language: de\\n"\n\n#: a.cc\nmsgid "one %s "\n"more"\nmsgstr "eins %s "\n"mehr"\n\n'
        '#, fuzzy, c-format\n#| msgid "old %s"\nmsgid "new %s from %s"\nmsgstr "alt %s"\n\n'
        '#, fuzzy\nmsgid "guessed"\nmsgstr "geraten"\n'
    )
    assert translations.parse_po(text) == {"one %s more": "eins %s mehr", "old %s": "alt %s"}


@pytest.mark.parametrize(
    ("text", "argument", "sample"),
    [
        ("%s was not found (really).", None, "x was not found (really)."),
        ("{0} MB more on {1} needed", None, "5 MB more on /usr needed"),
        ("Key %1$s of %2$s is missing", None, "Key a of b is missing"),
        ("%<PRIu64>%cB more space is needed", None, "5KB more space is needed"),
        ("no package %s here", "nvidia", "no package nvidia here"),
    ],
)
def test_a_format_string_becomes_a_pattern(text: str, argument: str | None, sample: str) -> None:
    pattern = compile_catalog.translated(text, argument)
    assert pattern and re.search(pattern, sample) and not re.search(pattern, "nothing of the kind")
    assert compile_catalog.translated("%s 被 %s 需要", None) is None
