#!/usr/bin/env python3
"""Build the collection gpu_ready.nodes for ansible-galaxy: build/gpu_ready-nodes-VERSION.tar.gz.

usage: tools/build_collection.py [--output DIRECTORY]

The checkout is the collection: plugins/modules and plugins/module_utils are links, and galaxy.yml says what does not
belong to it. So nothing is rewritten here, and `ansible-galaxy collection install git+URL` installs the same files.
This program builds from what git tracks, since an inventory or a vault file in the working directory must not travel,
and gives the same bytes for the same commit.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES, MANIFEST = "FILES.json", "MANIFEST.json"


class BuildError(Exception):
    """Its text is the message."""


def run(*argv: str | Path) -> str:
    """Return what a program prints, or raise BuildError with it."""
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{Path(argv[0]).name}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def export_tracked_files(target: Path) -> None:
    """Copy the files that git tracks, as they are in the working directory; links stay links."""
    for name in filter(None, run("git", "ls-files", "-z").split("\0")):
        source, copy = ROOT / name, target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            copy.symlink_to(source.readlink())
        elif source.exists():  # not one that was deleted since the last commit
            copy.write_bytes(source.read_bytes())
            copy.chmod(0o755 if os.access(source, os.X_OK) else 0o644)


def to_json(value: object) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode()


def repack(archive: Path, seconds: int) -> bytes:
    """Return the archive with its lists in order and every time set to ``seconds`` since 1970.

    ansible-galaxy (collection/__init__.py: _build_files_manifest_walk, _build_collection_tar) lists files in the order
    of the directory and gives its own two files the present time.
    """
    contents: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            file = tar.extractfile(member) if member.isreg() else None
            contents[member.name] = member, file.read() if file else b""
    files = json.loads(contents[FILES][1])
    files["files"].sort(key=lambda entry: entry["name"])
    manifest = json.loads(contents[MANIFEST][1])
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(to_json(files)).hexdigest()
    contents[FILES], contents[MANIFEST] = (
        (contents[FILES][0], to_json(files)),
        (contents[MANIFEST][0], to_json(manifest)),
    )
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=seconds) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(contents, key=lambda name: (name not in (MANIFEST, FILES), name)):
            member, content = contents[name]
            member.mtime, member.size, member.pax_headers = seconds, len(content), {}
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def build(output: Path) -> Path:
    """Build the archive in a directory and return its path."""
    with tempfile.TemporaryDirectory() as scratch:
        source, built = Path(scratch) / "source", Path(scratch) / "built"
        export_tracked_files(source)
        run(Path(sys.executable).parent / "ansible-galaxy", "collection", "build", source, "--output-path", built)
        [archive] = built.iterdir()
        packed = repack(archive, int(run("git", "log", "-1", "--format=%ct")))
    output.mkdir(parents=True, exist_ok=True)
    (output / archive.name).write_bytes(packed)
    return output / archive.name


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--output", type=Path, default=ROOT / "build", help="directory for the archive (default: build)"
    )
    try:
        path = build(parser.parse_args().output)
    except (BuildError, OSError) as error:
        print(f"build_collection: {error}", file=sys.stderr)
        return 1
    print(f"build_collection: {path}. Install it with: ansible-galaxy collection install {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
