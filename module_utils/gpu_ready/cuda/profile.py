"""/etc/profile.d/cuda.sh and cuda.csh: the toolkit in PATH and LD_LIBRARY_PATH of login shells.

Sourcing them twice changes nothing; an unset or empty variable gets no empty element (which would mean the current
directory); they set no helper variables or functions, and work under ``set -eu``.
"""

from typing import Dict, Optional

SH = "/etc/profile.d/cuda.sh"
CSH = "/etc/profile.d/cuda.csh"
PATHS = (SH, CSH)

_MARK = "# Written by gpu-ready (role cuda_toolkit)"
_HEAD = _MARK + "; the next run reverts changes made here.\n"


def _entries(prefix: str) -> "list[tuple[str, str]]":
    # Each entry is prepended: lib64 ends up before CUPTI.
    return [
        ("PATH", prefix + "/bin"),
        ("LD_LIBRARY_PATH", prefix + "/extras/CUPTI/lib64"),
        ("LD_LIBRARY_PATH", prefix + "/lib64"),
    ]


def sh(prefix: str) -> str:
    """For sh, dash, bash, ksh and zsh."""
    text = _HEAD
    for name, directory in _entries(prefix):
        text += (
            'case ":${%(name)s:-}:" in\n'
            "  *:%(directory)s:*) ;;\n"
            '  *) export %(name)s="%(directory)s${%(name)s:+:$%(name)s}" ;;\n'
            "esac\n"
        ) % {"name": name, "directory": directory}
    return text


def csh(prefix: str) -> str:
    """For csh and tcsh."""
    text = _HEAD
    for name, directory in _entries(prefix):
        text += (
            "if (! $?%(name)s) then\n"
            "  setenv %(name)s %(directory)s\n"
            'else if ("$%(name)s" == "") then\n'
            "  setenv %(name)s %(directory)s\n"
            'else if (":${%(name)s}:" !~ *:%(directory)s:*) then\n'
            '  setenv %(name)s "%(directory)s:${%(name)s}"\n'
            "endif\n"
        ) % {"name": name, "directory": directory}
    return text


def files(prefix: str) -> Dict[str, str]:
    return {SH: sh(prefix), CSH: csh(prefix)}


def is_ours(text: Optional[str]) -> bool:
    return text is not None and text.startswith(_MARK)
