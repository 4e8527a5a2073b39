"""The texts of /etc/profile.d/cuda.sh and cuda.csh: the toolkit in PATH and LD_LIBRARY_PATH of login shells.

Sourced twice they change nothing the second time; an unset or empty variable gets no empty element (which would mean
the current folder); they set no helper variables or functions, and work under ``set -eu``.
"""

from typing import Dict, Optional

SH = "/etc/profile.d/cuda.sh"
CSH = "/etc/profile.d/cuda.csh"
PATHS = (SH, CSH)

_HEAD = "# Written by gpu-ready (role cuda_toolkit); a change made here is taken back by the next run.\n"


def _entries(prefix: str) -> "list[tuple[str, str]]":
    # Each is put in front of the ones before it: lib64 ends up ahead of CUPTI.
    return [
        ("PATH", prefix + "/bin"),
        ("LD_LIBRARY_PATH", prefix + "/extras/CUPTI/lib64"),
        ("LD_LIBRARY_PATH", prefix + "/lib64"),
    ]


def sh(prefix: str) -> str:
    """Return the text for sh, dash, bash, ksh and zsh."""
    text = _HEAD
    for name, folder in _entries(prefix):
        text += (
            'case ":${%(name)s:-}:" in\n'
            "  *:%(folder)s:*) ;;\n"
            '  *) export %(name)s="%(folder)s${%(name)s:+:$%(name)s}" ;;\n'
            "esac\n"
        ) % {"name": name, "folder": folder}
    return text


def csh(prefix: str) -> str:
    """Return the text for csh and tcsh."""
    text = _HEAD
    for name, folder in _entries(prefix):
        text += (
            "if (! $?%(name)s) then\n"
            "  setenv %(name)s %(folder)s\n"
            'else if ("$%(name)s" == "") then\n'
            "  setenv %(name)s %(folder)s\n"
            'else if (":${%(name)s}:" !~ *:%(folder)s:*) then\n'
            '  setenv %(name)s "%(folder)s:${%(name)s}"\n'
            "endif\n"
        ) % {"name": name, "folder": folder}
    return text


def files(prefix: str) -> Dict[str, str]:
    """Return path and text of both files."""
    return {SH: sh(prefix), CSH: csh(prefix)}


def is_ours(text: Optional[str]) -> bool:
    """Return whether a file is one that we wrote."""
    return text is not None and text.startswith(_HEAD)
