"""Part `explain`: what `gpu-explain read` says about the outputs of this machine."""

import contextlib
import io

from plugins.plugin_utils.gpu_ready.explain import cli
from tools.real_gpu import part

KINDS = {
    "nvidia-smi": "nvidia-smi",
    "nvidia-smi-L": "nvidia-smi",
    "nvidia-smi-q": "nvidia-smi",
    "nvidia-smi-q-x": "nvidia-smi",
    "nvidia-smi-topo": "nvidia-smi",
    "nvidia-smi-nvlink": "nvidia-smi",
    "dmesg": "dmesg",
    "lspci": "lspci",
    "modinfo": "proc-driver-version",
    "proc-driver-nvidia-version": "proc-driver-version",
    "etc-os-release": "os-release",
}
"""The kind by the name of an output."""


def read(kind: str, path: str, *options: str) -> tuple[int, str]:
    """Status and output of `gpu-explain read`."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = cli.main(["read", *options, kind, path])
    return status, printed.getvalue()


def main() -> str:
    found = {name: part.results() / f"outputs/{name}.txt" for name in KINDS}
    found = {name: path for name, path in found.items() if path.exists()}
    if not found:
        raise part.NotRunError("the part outputs left no file")
    answers, failed = part.own_directory("explain"), []
    for name, path in found.items():
        status, text = read(KINDS[name], str(path))
        print(f"--- {name}\n{text}")
        (answers / f"{name}.txt").write_text(text, encoding="utf-8")
        (answers / f"{name}.json").write_text(read(KINDS[name], str(path), "--json")[1], encoding="utf-8")
        if status:
            failed.append(f"{name} (status {status})")
    if failed:
        raise part.FailedError(f"gpu-explain failed: {', '.join(failed)}")
    return f"{len(found)} outputs read"


if __name__ == "__main__":
    part.run(main)
