"""Which kernel GRUB boots next: from its environment, from its menu, and unknown cases."""

import pytest

from plugins.module_utils.gpu_ready.facts import base
from plugins.module_utils.gpu_ready.system import grub
from tests.unit.recorded import RecordedHost

OLD, NEW = "6.1.0-25-amd64", "6.1.0-50-amd64"
UUID = "3f1c0b7e-0000-4000-8000-3a5f5d1c2b9a"
# As grub-mkconfig of Debian 12 writes it (00_header, 10_linux, 30_uefi-firmware), without what each entry loads.
HEAD = """if [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="%s"
fi
"""
ENTRY = """%(tab)smenuentry '%(title)s' --class debian $menuentry_id_option 'gnulinux-%(kernel)s-advanced-UUID' {
%(tab)s	echo	'Loading Linux %(kernel)s ...'
%(tab)s	linux	/boot/vmlinuz-%(kernel)s root=UUID=x ro  quiet
%(tab)s	initrd	/boot/initrd.img-%(kernel)s
%(tab)s}
"""


def entry(kernel: str, tab: str = "\t") -> str:
    return ENTRY % {
        "kernel": kernel,
        "tab": tab,
        "title": f"Debian GNU/Linux, with Linux {kernel}" if tab else "Debian",
    }


DEBIAN = (
    entry(NEW, "")
    + "submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-UUID' {\n"
    + "".join(entry(kernel) for kernel in (NEW, NEW, OLD, OLD))  # each with its recovery mode
    + '}\nif [ "$grub_platform" = "efi" ]; then\n\tmenuentry \'UEFI Firmware Settings\' {\n\t\tfwsetup\n\t}\nfi\n'
)
EL7 = "".join(ENTRY % {"kernel": k, "tab": "", "title": f"CentOS Linux ({k}) 7 (Core)"} for k in (NEW, OLD))
BLS = "insmod blscfg\nblscfg\n"
SAVED = "# GRUB Environment Block\nsaved_entry=%s\n" + "#" * 40


@pytest.mark.parametrize(
    ("environment", "default", "menu", "kernel"),
    [
        ("", "0", DEBIAN, NEW),
        ("", "1>0", DEBIAN, NEW),
        ("", "1>2", DEBIAN, OLD),
        ("", "gnulinux-advanced-UUID>gnulinux-6.1.0-25-amd64-advanced-UUID", DEBIAN, OLD),
        ("", "Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux 6.1.0-25-amd64", DEBIAN, OLD),
        ("", "no such entry", DEBIAN, None),
        ("", "7", DEBIAN, None),
        # GRUB_DEFAULT=saved; an entry saved before another default was set is no longer read.
        (SAVED % "1>2", "${saved_entry}", DEBIAN, OLD),
        (SAVED % f"gnulinux-{OLD}-advanced-{UUID}", "${saved_entry}", DEBIAN, OLD),
        (SAVED % f"gnulinux-{OLD}-advanced-{UUID}", "0", DEBIAN, NEW),
        ("saved_entry=\n", "${saved_entry}", DEBIAN, NEW),
        ("", "${saved_entry}", DEBIAN, NEW),
        # grub-reboot: for one boot.
        ("saved_entry=0\nnext_entry=1>2\n", "0", DEBIAN, OLD),
        ("next_entry=\nsaved_entry=0\n", "${saved_entry}", DEBIAN, NEW),
        # EL 7 saves titles, with blanks in them; a menu of its own.
        (SAVED % f"CentOS Linux ({OLD}) 7 (Core)", "${saved_entry}", EL7, OLD),
        (SAVED % "1", "${saved_entry}", EL7, OLD),
        # EL 8 and newer, Fedora: one file per entry, the newest first.
        (SAVED % f"0123abcd-{OLD}", "${saved_entry}", BLS, OLD),
        (SAVED % "1", "${saved_entry}", BLS, OLD),
        (SAVED % "0", "${saved_entry}", BLS, NEW),
        (SAVED % "9", "${saved_entry}", BLS, None),
        ("", "${saved_entry}", BLS, NEW),
    ],
)
def test_default_of_grub(environment: str, default: str, menu: str, kernel: str | None) -> None:
    assert grub.find_default_kernel(environment, HEAD % default + menu, [OLD, NEW]) == kernel


def test_a_kernel_of_another_kind_has_a_longer_name() -> None:
    kernels = ["5.14.0-570.el9.x86_64", "5.14.0-570.el9.x86_64+rt"]
    for kernel in kernels:
        assert grub.find_default_kernel(SAVED % f"0123abcd-{kernel}", "", kernels) == kernel


@pytest.mark.parametrize("text", ["", "\0", "set default=", 'set default="', "saved_entry", "menuentry {", "}" * 9])
def test_unreadable_text_gives_no_kernel(text: str) -> None:
    assert grub.find_default_kernel(text, text, [NEW]) is None


def test_a_menu_is_used_unless_its_kernel_was_removed() -> None:
    files = {"/boot/vmlinuz-" + kernel: "" for kernel in (OLD, NEW)} | {"/boot/grub/grub.cfg": HEAD % "1>2" + DEBIAN}
    links = {"/vmlinuz": "boot/vmlinuz-" + NEW}
    assert base.kernel_facts(RecordedHost(files=files, links=links), NEW).next_boot == OLD
    del files["/boot/vmlinuz-" + OLD]
    assert base.kernel_facts(RecordedHost(files=files, links=links), NEW).next_boot == NEW
