"""Completion of gpu-explain's arguments in a shell, made from the same parsers that read them."""

import argparse
from typing import Dict, List

SHELLS = ("bash", "zsh")

BASH = """\
# bash completion of gpu-explain: . <(gpu-explain completion bash)
_gpu_explain() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} index kind=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W '%(commands)s -h --help' -- "$word"))
        return
    fi
    case $command in
        read)
            for ((index = 2; index < COMP_CWORD; index++)); do
                [[ ${COMP_WORDS[index]} == -* ]] || { kind=${COMP_WORDS[index]}; break; }
            done
            if [[ $word == -* ]]; then COMPREPLY=($(compgen -W '%(read)s' -- "$word"))
            elif [[ -z $kind ]]; then COMPREPLY=($(compgen -W '%(kinds)s' -- "$word"))
            else compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word"); fi ;;
        host)
            case $before in
                %(files)s) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
                --set) compopt -o nospace; COMPREPLY=($(compgen -W '%(variables)s' -- "$word")) ;;
                *) COMPREPLY=($(compgen -W '%(host)s' -- "$word")) ;;
            esac ;;
        completion) COMPREPLY=($(compgen -W '%(shells)s' -- "$word")) ;;
    esac
}
complete -F _gpu_explain gpu-explain
"""

ZSH = """\
#compdef gpu-explain
# zsh completion of gpu-explain: a file _gpu-explain in $fpath, or: source <(gpu-explain completion zsh)
_gpu_explain() {
    if ((CURRENT == 2)); then
        compadd -- %(commands)s -h --help
        return
    fi
    case $words[2] in
        read)
            if [[ $words[CURRENT] == -* ]]; then compadd -- %(read)s
            elif ((CURRENT == 3)); then compadd -- %(kinds)s
            else _files; fi ;;
        host)
            case $words[CURRENT-1] in
                %(files)s) _files ;;
                --set) compadd -S '' -- %(variables)s ;;
                *) compadd -- %(host)s ;;
            esac ;;
        completion) compadd -- %(shells)s ;;
    esac
}
if [[ $funcstack[1] == _gpu-explain ]]; then _gpu_explain "$@"; else compdef _gpu_explain gpu-explain; fi
"""


def options(parser: argparse.ArgumentParser) -> List[str]:
    """Return the options of a parser, the short ones first."""
    return [name for action in parser._actions for name in action.option_strings]


def script(
    shell: str, parsers: Dict[str, argparse.ArgumentParser], kinds: List[str], variables: List[str], files: List[str]
) -> str:
    """Return the script for a shell. ``parsers`` by command; ``files``: options of `host` that take a file."""
    values = {
        "commands": " ".join(parsers),
        "read": " ".join(options(parsers["read"])),
        "host": " ".join(options(parsers["host"])),
        "kinds": " ".join(kinds),
        "variables": " ".join(name + "=" for name in variables),
        "files": "|".join(files),
        "shells": " ".join(SHELLS),
    }
    return (BASH if shell == "bash" else ZSH) % values
