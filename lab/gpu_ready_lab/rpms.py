"""RPMs from declarations (declarations.py), and signed repositories of them, with module streams.

A version is "[EPOCH:]VERSION-RELEASE". `triggers` run after a transaction that installed files into directories.
`module: NAME` adds a package to that module's streams (streams.yml); `signed: false` omits its signature.
"""

import concurrent.futures
import contextlib
import fnmatch
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from . import packages
from .declarations import Declared, File
from .packages import MADE, Fetch, Key, lay, sources_of
from .say import LabError, run

BATCH = 60  # packages of one rpmbuild: it takes 0.1 s to start and 5 ms for a package
NEEDS = {
    "/usr/bin/rpmbuild": "rpm",
    "/usr/bin/rpmsign": "rpm",
    "/usr/bin/createrepo_c": "createrepo-c",
    "/usr/bin/modifyrepo_c": "createrepo-c",
    "/usr/bin/make": "make",
}


class Rpm(NamedTuple):
    """An RPM to make."""

    name: str
    epoch: str
    version: str
    release: str
    architecture: str
    summary: str
    tags: tuple[tuple[str, str], ...]  # relations, in order: ("Requires", "dkms")
    files: tuple[File, ...]
    scripts: tuple[tuple[str, str], ...]  # ("post", text), or with directories for a file trigger
    module: str | None
    signed: bool
    repositories: tuple[str, ...]

    @property
    def file_name(self) -> str:
        """Return the name of its .rpm (an epoch is not part of it)."""
        return f"{self.name}-{self.version}-{self.release}.{self.architecture}.rpm"

    @property
    def nevra(self) -> str:
        """Return its full name as module metadata has it."""
        return f"{self.name}-{self.epoch}:{self.version}-{self.release}.{self.architecture}"


def from_declared(declared: Declared) -> Rpm:
    """Return a declared package."""
    given = declared.given
    version = re.fullmatch(r"(?:(\d+):)?([^:-]+)-([^:-]+)", declared.version)
    if version is None:
        raise LabError(f"{declared.where}: expected a version [EPOCH:]VERSION-RELEASE, found {declared.version!r}")
    triggers = [(f"transfiletriggerin {' '.join(each['paths'])}", each["text"]) for each in given.get("triggers", [])]
    return Rpm(
        declared.name, version[1] or "0", version[2], version[3], given.get("architecture", "x86_64"),
        given.get("description", "stand-in for the vendor's package of this name"),
        tuple((name.capitalize(), word) for name, words in declared.relations.items() for word in words),
        declared.files, (*declared.scripts, *triggers), given.get("module"), given.get("signed", True),
        declared.repositories,
    )  # fmt: skip


# ---- building -------------------------------------------------------------------------------------


def digest(rpm: Rpm) -> str:
    """A digest of the content of a package: sources by content, Debian's files by name."""
    total = hashlib.sha256(json.dumps([rpm._replace(repositories=(), module=None)]).encode())
    total.update(packages.recipe(*packages.LAYING, _spec, _literal, _build))
    total.update(sources_of(rpm.files))
    return total.hexdigest()[:16]


def build_all(requested: Sequence[Rpm], cache: Path, fetch: Fetch, key: Key) -> dict[Rpm, Path]:
    """Make and sign the packages that are missing in the cache; return the .rpm of each."""
    cache.mkdir(parents=True, exist_ok=True)
    made = {rpm: cache / f"{digest(rpm)}-{key.fingerprint[-8:]}-{rpm.file_name}" for rpm in requested}
    missing = {path: rpm for rpm, path in made.items() if not path.exists()}
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        for done in [pool.submit(_build, batch, fetch, key) for batch in _batches(missing)]:
            done.result()
    return made


def _batches(missing: dict[Path, Rpm]) -> list[dict[Path, Rpm]]:
    """Divide packages so that no two of a batch have the same name, or files at the same path that differ."""
    batches: list[tuple[dict[Path, Rpm], set[str], dict[str, File]]] = []
    for path, rpm in missing.items():
        for batch, names, laid in batches:
            if (
                len(batch) < BATCH
                and rpm.name not in names
                and all(laid.get(file.path, file) == file for file in rpm.files)
            ):
                break
        else:
            batch, names, laid = {}, set(), {}
            batches.append((batch, names, laid))
        batch[path] = rpm
        names.add(rpm.name)
        laid.update((file.path, file) for file in rpm.files)
    return [batch for batch, _, _ in batches]


def _build(batch: dict[Path, Rpm], fetch: Fetch, key: Key) -> None:
    """Make and sign the packages of a batch: subpackages of one spec file whose own package has no files."""
    with tempfile.TemporaryDirectory(prefix="gpu-ready-lab-") as name:
        directory = Path(name)
        root = directory / "root"
        root.mkdir(mode=0o755)
        laid = set()
        for rpm in batch.values():
            for file in rpm.files:
                if file.path not in laid:
                    lay(root, file, fetch)
                    laid.add(file.path)
        for path in root.rglob("*"):
            os.utime(path, (MADE, MADE), follow_symlinks=False)
        (directory / "batch.spec").write_text(_spec(batch.values()))
        defines = {
            "_topdir": str(directory / "top"),
            "_dbpath": str(directory / "db"),
            "_rpmdir": str(directory / "out"),
            "_rpmfilename": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
            "_binary_payload": "w1.gzdio",
            "_buildhost": "gpu-ready-lab",
            "debug_package": "%{nil}",
            "__os_install_post": "%{nil}",
            "_build_id_links": "none",
            "clamp_mtime_to_source_date_epoch": "1",
            "use_source_date_epoch_as_buildtime": "1",
        }
        run(
            [
                "/usr/bin/rpmbuild", "-bb", "--quiet", "--noclean", "--target", "x86_64", "--buildroot", str(root),
                *(word for name, value in defines.items() for word in ("--define", f"{name} {value}")),
                str(directory / "batch.spec"),
            ],
            limit=900, what=f"make {len(batch)} RPMs",
            env={"PATH": "/usr/bin:/bin", "HOME": name, "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": str(MADE)},
        )  # fmt: skip
        out = {path: directory / "out" / rpm.file_name for path, rpm in batch.items()}
        signed = [str(out[path]) for path, rpm in batch.items() if rpm.signed]
        if signed:
            with key.home() as home:
                run(
                    [
                        "/usr/bin/rpmsign", "--define", f"_gpg_path {home}", "--define", "__gpg /usr/bin/gpg",
                        "--define", f"_gpg_name {key.fingerprint}", "--define", "_gpg_digest_algo sha512",
                        "--define", f"_gpg_sign_cmd_extra_args {' '.join(packages.NO_QUESTIONS)}",
                        "--addsign", *signed,
                    ],
                    limit=900, what=f"sign {len(signed)} RPMs",
                    env={"PATH": "/usr/bin:/bin", "HOME": name, "LC_ALL": "C.UTF-8"},
                )  # fmt: skip
        for path, built in out.items():
            temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
            shutil.copy(built, temporary)
            temporary.replace(path)


def _spec(rpms: Iterable[Rpm]) -> str:
    lines = ["Name: gpu-ready-lab-batch", "Version: 1", "Release: 1", "Summary: RPMs of the gpu-ready lab"]
    lines += ["License: Proprietary", "AutoReqProv: no", "%description", "Never made itself."]
    for rpm in rpms:
        lines += [f"%package -n {rpm.name}", f"Version: {rpm.version}", f"Release: {rpm.release}"]
        lines += [f"Epoch: {rpm.epoch}"] if rpm.epoch != "0" else []
        lines += ["BuildArch: noarch"] if rpm.architecture == "noarch" else []
        lines += [f"Summary: {_literal(rpm.summary)}", "AutoReqProv: no"]
        lines += [f"{name}: {_literal(value)}" for name, value in rpm.tags]
        lines += [f"%description -n {rpm.name}"]
        lines += ["Made by the gpu-ready lab: it behaves like the vendor's package but drives nothing."]
        for script, text in rpm.scripts:
            kind, *directories = script.split()
            lines += [f"%{kind} -n {rpm.name}" + (f" -- {' '.join(directories)}" if directories else "")]
            lines += [_literal(text.rstrip("\n"))]
        lines += [f"%files -n {rpm.name}", "%defattr(-,root,root,0755)"]
        for file in rpm.files:
            mode = "-" if file.link is not None else f"{file.mode:o}"
            config = "%config(noreplace) " if file.path.startswith("/etc/") and file.link is None else ""
            lines.append(f'{config}%attr({mode},root,root) "{_literal(file.path)}"')
    return "\n".join(lines) + "\n"


def _literal(text: str) -> str:
    """A text escaped for a spec file, where a per cent sign starts a macro."""
    return text.replace("%", "%%")


# ---- repositories ---------------------------------------------------------------------------------


def write_repository(
    directory: Path,
    content: Iterable[tuple[Rpm, Path]],
    key: Key,
    cache: Path,
    streams: list[dict[str, Any]] | None = None,
) -> None:
    """Write a repository: the packages, their metadata with the streams of modules, signed.

    The metadata is made unless the cache has that of this content.
    """
    directory.mkdir(parents=True, exist_ok=True)
    total = hashlib.sha256(packages.recipe(_metadata) + json.dumps([key.fingerprint, streams]).encode())
    for rpm, path in sorted(content, key=lambda pair: pair[0].file_name):
        os.link(path, directory / rpm.file_name)
        total.update(f"{path.name}\n".encode())  # which contains a digest of its content
    made = cache / total.hexdigest()[:24]
    if made.exists():
        shutil.copytree(made, directory / "repodata", copy_function=os.link)
        return
    _metadata(directory, key, streams)
    cache.mkdir(parents=True, exist_ok=True)
    new = made.with_name(f"{made.name}.{os.getpid()}.new")
    shutil.copytree(directory / "repodata", new, copy_function=os.link)
    new.rename(made)


def _metadata(directory: Path, key: Key, streams: list[dict[str, Any]] | None) -> None:
    run(
        [
            "/usr/bin/createrepo_c", "--quiet", "--no-database", "--workers", "1", "--revision", str(MADE),
            "--set-timestamp-to-revision", str(directory),
        ],
        limit=900, what=f"write the metadata of {directory.name}",
    )  # fmt: skip
    if streams:
        with tempfile.TemporaryDirectory(prefix="gpu-ready-lab-") as name:
            document = Path(name, "modules.yaml")
            document.write_text(
                yaml.safe_dump_all(streams, explicit_start=True, explicit_end=True, sort_keys=False, width=4096)
            )
            run(
                ["/usr/bin/modifyrepo_c", "--mdtype=modules", str(document), str(directory / "repodata")],
                limit=360, what=f"add module streams to {directory.name}",
            )  # fmt: skip
    with key.home() as home:
        packages.gpg(home, "--armor", "--detach-sign", str(directory / "repodata" / "repomd.xml"))


def module_documents(module: str, given: dict[str, Any], content: Sequence[Rpm]) -> list[dict[str, Any]]:
    """Return the module metadata of a repository: a document for each stream that has packages, and the defaults.

    The form is that of modulemd version 2, as NVIDIA's genmodules.py (yum-packaging-precompiled-kmod) writes it.
    """
    documents, defaults = [], {}
    for stream, rule in given["streams"].items():
        chosen = list(_chosen(rule, [rpm for rpm in content if rpm.module == module]))
        names = {rpm.name for rpm in chosen}
        listed = given["profiles"].items()
        profiles = {profile: [name for name in its if name in names] for profile, its in listed}
        if not chosen:
            continue
        newest = max((rpm.version for rpm in chosen), key=_numbers)
        documents.append(
            {
                "document": "modulemd",
                "version": 2,
                "data": {
                    "name": module,
                    "stream": str(stream),
                    "version": 20260408093422,
                    "context": hashlib.sha256(str(stream).encode()).hexdigest()[:8],
                    "arch": "x86_64",
                    "summary": f"Nvidia driver for {stream} branch",
                    "description": f"The lab's stand-in for driver version {newest}.",
                    "license": {"module": ["MIT"]},
                    "profiles": {name: {"rpms": rpms} for name, rpms in profiles.items() if rpms},
                    "artifacts": {"rpms": sorted(rpm.nevra for rpm in chosen)},
                },
            }
        )
        defaults[str(stream)] = ["default"]
    if not documents:
        return []
    data: dict[str, Any] = {"module": module}
    if given.get("default") in defaults:
        data["stream"] = given["default"]
    return [*documents, {"document": "modulemd-defaults", "version": 1, "data": {**data, "profiles": defaults}}]


def _chosen(rule: dict[str, Any], content: list[Rpm]) -> Iterator[Rpm]:
    """Return the packages of a stream: of one branch, or of the newest one, without those of other kinds of modules."""
    branches = {rpm.version.split(".")[0] for rpm in content}
    branch = str(rule["branch"]) if "branch" in rule else max(branches, key=int, default="")
    for rpm in content:
        left_out = any(fnmatch.fnmatchcase(rpm.name, pattern) for pattern in rule["without"])
        if rpm.version.split(".")[0] == branch and not left_out:
            yield rpm


def _numbers(version: str) -> list[int]:
    with contextlib.suppress(ValueError):
        return [int(part) for part in version.split(".")]
    return []
