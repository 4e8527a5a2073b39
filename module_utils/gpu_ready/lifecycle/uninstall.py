"""Revert the changes recorded in the manifest, in reverse order. Foreign changes are left alone."""

import base64
import functools
import os
import re
import shutil
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from ..base import files, json_file, manifest
from ..base import pending as rebuilds
from ..base.errors import GpuReadyError
from ..base.host import Host
from ..catalog import driver_packages
from ..containers import cdi
from ..containers import engine as engines
from ..containers.containerd import config as containerd_config
from ..containers.containerd import files as containerd_files
from ..containers.containerd import toml
from ..containers.daemon_json import merge as daemon_json
from ..cuda import default as cuda_default
from ..cuda import runfile as cuda_runfile
from ..cuda import toolkit as cuda
from ..cuda.cudnn import install as cudnn_install
from ..drain import journal as drain
from ..driver import gpu_services, kernel_module
from ..driver.runfile import install as runfile
from ..driver.runfile import installed_files
from ..driver.runfile.spec import RunfileError
from ..facts import docker as observe_docker
from ..facts import engines as observe_engines
from ..facts import work as observe_work
from ..facts.model import DockerFacts, WorkFacts
from ..packaging import apt_sources, rpm, select, yum_repos
from ..packaging import manager as packages
from ..plan import in_use
from ..plan.containers import docker as plan_docker
from ..plan.model import CONTAINERD_RESTART, DOCKER_RESTART, DRIVER_RELOAD
from ..upgrade import journal

LIMIT = 1200.0
DIRECTORIES = cdi.DIRECTORIES + (
    os.path.dirname(cdi.BOOT_NODES),
    os.path.dirname(cdi.REFRESH_OLD),
    os.path.dirname(cdi.NODES[1]),
    os.path.dirname(containerd_config.DROP_IN),
)
"""Directories that may have been created for a file of gpu-ready, and are removed with it when they are empty."""
IMEX = "nvidia-imex"
WANTS = "/etc/systemd/system/multi-user.target.wants/"
MODULE_SOURCES = ("/usr/src", "/var/lib/dkms")
"""Directories with the sources of the driver's module, which not every package removes."""
INITRAMFS = (["update-initramfs", "-u", "-k", "all"], ["dracut", "--force", "--regenerate-all"])
"""What rebuilds the initial RAM disk, as the catalog's distributions name it."""


class UninstallError(GpuReadyError):
    """A recorded change cannot be reverted. The message has cause and remedy."""


class Action(NamedTuple):
    """One change to revert: its description, and the function that does it."""

    words: str
    act: Callable[[], object]


def restored(entry: Dict[str, Any]) -> Optional[bytes]:
    """Content of a file before gpu-ready, None if it did not exist."""
    return None if entry.get("before") is None else base64.b64decode(entry["before"])


def reverted_content(path: str, entry: Dict[str, Any], now: Optional[bytes]) -> Optional[bytes]:
    """A file without the changes of gpu-ready: its former content, or a source list without what was enabled in it."""
    before = restored(entry)
    if before is None or not {"components", "sections"} & set(entry):
        return before
    if now is None:
        return None
    try:
        text, old = now.decode("utf-8"), before.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UninstallError("%s is not UTF-8 (%s): repair it, then run again" % (path, error)) from None
    if "sections" in entry:
        enabled = [name for name in entry["sections"] if not yum_repos.parse_sections(old).get(name, True)]
        return yum_repos.disable_sections(text, enabled).encode("utf-8")
    return apt_sources.disable_components(path, text, old, entry["components"], entry["codename"]).encode("utf-8")


def describe_unconfirmed(actions: List[Action], stops: List[str]) -> str:
    """Return the error for an uninstallation that nobody confirmed: what it would do and stop."""
    lines = [action.words for action in actions] + stops
    text = "nothing was removed: set gpu_ready_uninstall=true to remove what gpu-ready added to this host. That would:"
    return "\n- ".join([text] + lines)


def remove_empty(directory: str) -> None:
    """Remove the empty directories below a directory, and itself if it is empty then."""
    for path, _, _ in os.walk(directory, topdown=False):
        if not os.listdir(path):
            os.rmdir(path)


class Uninstall:
    """The changes to revert on this host. The list is made first, so check mode shows what a real run does.

    ``permitted``: disruptions that may stop work (gpu_ready_disrupt). ``stops``: what the permitted ones stop.
    """

    def __init__(self, host: Host, directory: str = manifest.DIRECTORY, permitted: Sequence[str] = ()) -> None:
        self.host = host
        self.directory = directory
        self.permitted = permitted
        self.stops: List[str] = []
        self.path = directory + "/manifest.json"
        self.mark = directory + "/" + os.path.basename(rebuilds.PATH)
        self.manager = select.choose_manager(host, journal.is_open(host))
        self.recorded = manifest.read(self.path)
        self.held_by = ""
        self._engine: Optional[DockerFacts] = None
        self._work: Optional[WorkFacts] = None

    def actions(self) -> List[Action]:
        """Everything that is still to be reverted, in order."""
        self.refuse_drained()
        found = (
            self.images()
            + self.docker()
            + self.containerd()
            + self.modules()
            + self.runfile()
            + self.cudnn()
            + self.toolkits()
            + self.holds()
            + self.packages()
            + self.streams()
            + self.keys()
            + self.groups()
            + self.leftovers()
            + self.alternatives()
            + self.directories()
            + self.files()
            + self.services()
        )
        if self.host.isdir(self.directory):
            found.append(Action("remove " + self.directory, lambda: shutil.rmtree(self.directory)))
        return found

    @property
    def engine(self) -> DockerFacts:
        if self._engine is None:
            self._engine = observe_docker.collect_engine(self.host)
        return self._engine

    @property
    def work(self) -> WorkFacts:
        """What runs on the host, collected once."""
        if self._work is None:
            self._work = observe_work.collect(self.host, self.engine)
        return self._work

    def refuse_work(self, disruption: str, text: str, work: in_use.AffectedWork) -> None:
        """Raise UninstallError for work that would be stopped without permission; remember what may be stopped.

        ``text`` has a %s for the work.
        """
        if work.is_empty:
            return
        if disruption not in self.permitted:
            raise UninstallError(
                "%s; nothing was removed: let it end or stop it, or permit it with gpu_ready_disrupt: [%s]"
                % (text % work.text(), disruption)
            )
        self.stops.append(text % work.text())

    def refuse_drained(self) -> None:
        """Raise UninstallError while the host is drained for an upgrade: its journal would be removed too."""
        try:
            drained = drain.describe(drain.read(self.host, self.directory + "/" + os.path.basename(drain.PATH)))
        except drain.DrainError as error:
            raise UninstallError(str(error)) from None
        if drained:
            raise UninstallError(
                "this host: an upgrade left it drained (%s). Undrain it with playbooks/undrain.yml, then run again; "
                "nothing was removed" % "; ".join(drained)
            )

    def run(self, argv: List[str]) -> None:
        """Run a program that changes the host; UninstallError when it fails."""
        answer = self.host.run(argv, LIMIT)
        if answer.rc != 0:
            raise UninstallError(
                "`%s` ended with %d (%s): repair the cause on the host, then run again"
                % (" ".join(argv), answer.rc, (answer.err or answer.out).strip()[-300:])
            )

    def docker_stays(self) -> bool:
        """True if docker was installed before gpu-ready."""
        return not set(packages.GROUPS["docker"]) & set(self.recorded.get("packages", {}))

    def images(self) -> List[Action]:
        """Remove the images of our verification from engines that stay."""
        found = self.docker_images() if self.recorded and self.docker_stays() else []
        if self.recorded and self.host.which("podman"):
            argv = ["podman", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}"]
            names = [name for name in self.host.run(argv).out.split() if "/gpu-ready/verify:" in name]
            act = functools.partial(self.run, ["podman", "image", "rm"] + names)
            found += [Action("remove podman's images " + ", ".join(names), act)] if names else []
        if self.recorded and self.host.which("ctr"):
            names = self.host.run(engines.list_command(engines.CONTAINERD)).out.split()
            act = functools.partial(self.namespace, names)
            found += [Action("remove containerd's images " + ", ".join(names), act)] if names else []
        return found

    def namespace(self, names: List[str]) -> None:
        """Empty and remove gpu-ready's namespace of containerd."""
        self.run(engines.ctr("images", "remove", "--sync") + names)
        self.run(["ctr", "namespaces", "remove", engines.NAMESPACE])

    def docker_images(self) -> List[Action]:
        """Remove the images of our verification from docker."""
        argv = ["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "gpu-ready/verify"]
        names = self.host.run(argv).out.split()
        argv = ["docker", "image", "rm"] + names
        return [Action("remove the images " + ", ".join(names), lambda: self.run(argv))] if names else []

    def containerd(self) -> List[Action]:
        """Remove gpu-ready's keys from containerd's files, and restart containerd if it runs."""
        try:
            edits = containerd_files.revert_edits(self.host, self.recorded)
        except toml.TomlError as error:
            raise UninstallError(
                "containerd's main file is no valid TOML (%s): repair it, then run again" % error
            ) from None
        if not edits:
            return []
        engine = observe_engines.collect_containerd(self.host, {})
        why = "gpu-ready's keys are removed from its files"
        if engine.active and not engine.keeps_containers:
            work = in_use.containers_of_engines(self.work, engines.CONTAINERD, engines.DOCKER)
            self.refuse_work(CONTAINERD_RESTART, in_use.CONSEQUENCES[CONTAINERD_RESTART] % (why, "%s"), work)
        words = "remove gpu-ready's keys from " + ", ".join(edit.path for edit in edits)
        words += " and restart containerd; containers keep running" if engine.active else ""
        return [Action(words, functools.partial(self.revert_containerd, edits, engine.active))]

    def revert_containerd(self, edits: List[containerd_config.FileEdit], restart: bool) -> None:
        """Write containerd's files without gpu-ready's keys, and restart it."""
        json_file.write_mark(self.directory + "/" + containerd_config.RESTART_MARK)
        for edit in edits:
            if edit.after is None:
                self.delete(edit.path)
            else:
                containerd_files.write_or_delete(edit.path, edit.after)
        if restart:
            self.run(["systemctl", "restart", "containerd"])
        manifest.drop("containerd", list(self.recorded.get("containerd", {})), self.path)

    def docker(self) -> List[Action]:
        """Remove gpu-ready's keys from docker's configuration; refuse if the restart would stop containers."""
        recorded = self.recorded.get("daemon_json", {})
        if not recorded:
            return []
        engine = self.engine
        found = []
        for path, entry in sorted(recorded.items()):
            before = restored(entry)
            record = {"before": None if before is None else before.decode("utf-8", "replace"), "keys": entry["keys"]}
            text = self.host.read(path)
            try:
                after = daemon_json.revert(text, record)
                keys = daemon_json.changed_keys(text, after)
            except daemon_json.DaemonJsonError as error:
                raise UninstallError("%s is not valid (%s): repair it, then run again" % (path, error)) from None
            need = plan_docker.RESTART if engine.restart_pending else daemon_json.activation(keys)
            need = need if engine.active and self.docker_stays() else "none"
            why = "%s is removed from %s" % (", ".join(keys), path) if keys else "an interrupted run changed " + path
            words = " and restart docker" if need == plan_docker.RESTART else ""
            if words and not (engine.info and engine.info.live_restore):
                work = in_use.containers_of_engines(self.work, engines.DOCKER)
                self.refuse_work(DOCKER_RESTART, in_use.CONSEQUENCES[DOCKER_RESTART] % (why, "%s"), work)
            if after != text:
                act = functools.partial(self.configure, path, after, need)  # type: Callable[[], object]
                found.append(Action("remove gpu-ready's keys from " + path + words, act))
            elif need == plan_docker.RESTART:
                act = functools.partial(self.run, ["systemctl", "restart", "docker"])
                found.append(Action("restart docker", act))
        return found

    def configure(self, path: str, after: Optional[str], need: str) -> None:
        """Write docker's configuration, and reload or restart docker if it runs and stays."""
        if need == plan_docker.RESTART:
            json_file.write_mark(self.directory + "/" + daemon_json.RESTART_MARK)
        if after is None:
            os.unlink(path)
        else:
            files.write_atomic(path, after.encode("utf-8"))
        if need != "none":
            self.run(["systemctl", need, "docker"])
        manifest.drop("daemon_json", [path], self.path)

    def modules(self) -> List[Action]:
        """Unload the modules of a driver that gpu-ready installed or loaded, if nothing holds them.

        After a reboot the host has loaded them itself.
        """
        names = kernel_module.loaded_modules(self.host)
        driver = driver_packages.driver_packages(dict.fromkeys(self.recorded.get("packages", {}), ""))
        if not names or not (self.recorded.get("modules") or driver or "driver" in self.recorded.get("runfile", {})):
            return []
        text = "the driver would be removed while it is used by %s"
        self.refuse_work(DRIVER_RELOAD, text, in_use.users_of_gpus(self.work))
        return [Action("unload " + " ".join(names), lambda: self.unload(names))]

    def unload(self, names: List[str]) -> None:
        """Stop the services that hold the GPUs for the system, then unload; what is held stays until a reboot."""
        for unit in gpu_services.UNITS:
            if self.host.run(["systemctl", "is-active", unit]).rc == 0:
                self.run(["systemctl", "stop", unit])
        self.held_by = kernel_module.module_users(self.host, names)
        if not self.held_by:
            for name in names:
                self.run(["rmmod", name])
        manifest.drop("modules", list(self.recorded.get("modules", {})), self.path)

    def runfile(self) -> List[Action]:
        """Run the uninstaller of a driver that gpu-ready installed by a .run installer."""
        if "driver" not in self.recorded.get("runfile", {}):
            return []
        version = installed_files.installed_version(self.host)
        return [Action("remove the driver %s of NVIDIA's installer" % (version or ""), self.remove_runfile)]

    def remove_runfile(self) -> None:
        """Run the driver's own uninstaller."""
        try:
            runfile.remove(self.host, self.directory)
        except RunfileError as error:
            raise UninstallError(str(error)) from None

    def cudnn(self) -> List[Action]:
        """Remove the cuDNN files that gpu-ready installed."""
        paths = cudnn_install.CudnnPaths()
        return [
            Action(
                "remove cuDNN from CUDA " + cuda,
                functools.partial(cudnn_install.remove_archive, cuda, paths, self.ldconfig),
            )
            for cuda in sorted(self.recorded.get("cudnn", {}))
        ]

    def ldconfig(self) -> None:
        """Update the dynamic linker's cache after libraries were removed."""
        self.run(["ldconfig"])

    def toolkits(self) -> List[Action]:
        """Run the uninstallers of CUDA toolkits that gpu-ready installed by NVIDIA's installer."""
        return [
            Action("remove CUDA %s of NVIDIA's installer" % version, functools.partial(self.remove_toolkit, version))
            for version in sorted(self.recorded.get(cuda_runfile.SECTION, {}))
        ]

    def remove_toolkit(self, version: str) -> None:
        """Run a toolkit's own uninstaller; other files in its directory are named, not deleted."""
        where = cuda_runfile.ToolkitPaths(
            self.directory + "/cuda", self.path, cuda_default.DefaultPaths(manifest=self.path)
        )
        try:
            cuda_runfile.remove_toolkit(self.host, version, cuda.toolkit_path(version), where)
        except (RunfileError, cuda_default.DefaultError) as error:
            raise UninstallError(str(error)) from None

    def holds(self) -> List[Action]:
        """Release the packages that gpu-ready holds."""
        installed = self.manager.installed() if self.recorded.get("holds") else {}
        names = [name for name in sorted(self.recorded.get("holds", {})) if name in installed and installed[name].hold]
        return [Action("release " + ", ".join(names), lambda: self.manager.unhold(names))] if names else []

    def streams(self) -> List[Action]:
        """Restore module streams."""
        enabled = self.manager.streams() if self.recorded.get("streams") else {}
        before = {name: entry.get("before") for name, entry in self.recorded.get("streams", {}).items()}
        changed = {name: stream for name, stream in before.items() if enabled.get(name) != stream}
        words = ", ".join("%s:%s" % (name, stream) if stream else "none of " + name for name, stream in changed.items())
        act = functools.partial(self.manager.restore_streams, changed)
        return [Action("restore the module stream " + words, act)] if changed else []

    def keys(self) -> List[Action]:
        """Remove the keys of gpu-ready's repositories from the RPM database."""
        recorded = self.recorded.get("rpm_keys", {})
        argv = ["rpm", "-q", "gpg-pubkey", "--qf", "%{VERSION} %{NAME}-%{VERSION}-%{RELEASE}\n"]
        rows = [line.split() for line in self.host.run(argv).out.splitlines()] if recorded else []
        names = sorted(
            row[1] for row in rows if len(row) == 2 and [key for key in recorded if rpm.is_same_key(row[0], key)]
        )
        argv = ["rpm", "-e", "--allmatches"] + names
        words = "remove %s from the RPM database" % ", ".join(names)
        return [Action(words, functools.partial(self.run, argv))] if names else []

    def packages(self) -> List[Action]:
        """Purge the packages that gpu-ready installed; refuse if a foreign package needs one."""
        if not self.recorded.get("packages"):
            return []
        installed = self.manager.installed()
        names = [
            n for n in sorted(self.recorded["packages"]) if n in installed and installed[n].state != "not-installed"
        ]
        if not names:
            return []
        self.refuse_removal_in_use(names)
        argv = self.manager.removal_command(names)
        if not self.manager.find_interrupted():
            self.would_purge(argv, names)
        return [Action("purge %d packages: %s" % (len(names), ", ".join(names)), lambda: self.purge(argv, names))]

    def refuse_removal_in_use(self, names: List[str]) -> None:
        """Raise UninstallError where containers need what would be purged: docker, or the container toolkit."""
        if set(packages.GROUPS["docker"]) & set(names):
            work = in_use.containers_of_engines(self.work, engines.DOCKER)
            self.refuse_work(DOCKER_RESTART, "docker would be removed, which stops %s", work)
        elif "nvidia-container-toolkit" in names:
            work = in_use.users_of_gpus(WorkFacts(containers=[one for one in self.work.containers if one.gpu == "GPU"]))
            self.refuse_work(DOCKER_RESTART, "the NVIDIA container toolkit would be removed, which is used by %s", work)

    def groups(self) -> List[Action]:
        """Delete the users, and the groups without members, that the packages created."""
        found = []
        for names, path, program in (
            (packages.USERS, "/etc/passwd", "userdel"),
            (packages.GROUPS, "/etc/group", "groupdel"),
        ):
            text = self.host.read(path) or ""
            accounts = {line.split(":")[0]: line.split(":") for line in text.splitlines()}
            what = "user" if path == "/etc/passwd" else "group"
            found += [
                Action("delete the %s %s" % (what, name), functools.partial(self.account, path, name, program))
                for name, owners in sorted(names.items())
                if set(owners) & set(self.recorded.get("packages", {}))
                and name in accounts
                and (what == "user" or not accounts[name][-1])
                and name not in self.recorded.get("stays", {})
            ]
        return found

    def account(self, path: str, name: str, program: str) -> None:
        """Delete a user or group if it still exists: a group may be deleted with its user."""
        if re.search("(?m)^%s:" % re.escape(name), self.host.read(path) or ""):
            self.run([program, name])

    def leftovers(self) -> List[Action]:
        """Delete files that programs of the packages wrote and that their removal leaves."""
        return [
            Action("delete " + path, functools.partial(self.delete, path))
            for path, owners in sorted(packages.LEFTOVERS.items())
            if set(owners) & set(self.recorded.get("packages", {}))
            and path not in self.recorded.get("stays", {})
            and self.host.exists(path)
        ]

    def delete(self, path: str) -> None:
        """Delete a file that may be deleted already, and its directory if that is empty."""
        if os.path.lexists(path):
            os.unlink(path)
        directory = os.path.dirname(path)
        if os.path.isdir(directory) and not os.listdir(directory):
            os.rmdir(directory)

    def would_purge(self, argv: List[str], names: List[str]) -> None:
        """Raise UninstallError if the purge would remove or install foreign packages."""
        simulation = self.manager.simulate("purging gpu-ready's packages", argv)
        # Of a package with two installed versions, the full name is recorded, and the short one is in the simulation.
        known = [name for name in simulation.remove if name in names or [n for n in names if n.startswith(name + "-")]]
        others = [name for name in simulation.remove if name not in known] + sorted(simulation.install)
        if others:
            raise UninstallError(
                "%s needs packages that gpu-ready installed and would be removed or changed with them: remove it "
                "yourself, then run again; nothing was removed" % ", ".join(others[:8])
            )

    def purge(self, argv: List[str], names: List[str]) -> None:
        """Purge exactly the recorded packages."""
        self.manager.repair(sorted(self.recorded["packages"]))
        self.would_purge(argv, names)
        sources = self.module_sources()
        if set(names) & set(self.imex()):
            # gpu-ready enabled it, not its package, whose removal would leave the link.
            self.run(["systemctl", "disable", "--now", IMEX])
        self.manager.run_change("purging gpu-ready's packages", argv)
        for directory in sources:
            remove_empty(directory)

    def imex(self) -> List[str]:
        """The recorded packages of IMEX, if it is enabled."""
        names = [name for name in self.recorded["packages"] if name.startswith(IMEX)]
        return names if self.host.exists(WANTS + IMEX + ".service") else []

    def module_sources(self) -> List[str]:
        """Directories with sources of a driver's module."""
        return [
            "%s/%s" % (directory, name)
            for directory in MODULE_SOURCES
            for name in self.host.listdir(directory)
            if name.startswith("nvidia") and self.host.isdir("%s/%s" % (directory, name))
        ]

    def alternatives(self) -> List[Action]:
        """Restore the link of the default CUDA toolkit, after packages have removed their own alternatives."""
        where = cuda_default.DefaultPaths(manifest=self.path)
        return [
            Action(
                "restore the alternative " + name,
                functools.partial(cuda_default.restore_default, self.host, entry, where),
            )
            for name, entry in sorted(self.recorded.get("alternatives", {}).items())
        ]

    def files(self) -> List[Action]:
        """Restore or delete the files that gpu-ready wrote."""
        found = []
        rebuild = rebuilds.read_pending_rebuild(self.host, self.mark)
        for path, entry in sorted(self.recorded.get("files", {}).items()):
            now = self.host.read_bytes(path)
            after = reverted_content(path, entry, now)
            if now == after:
                continue
            if path == yum_repos.SUBSCRIPTIONS and self.host.which("subscription-manager"):
                off = ["subscription-manager", "repos"] + ["--disable=" + name for name in entry.get("sections", [])]
                found.append(Action("restore " + path, functools.partial(self.run, off)))
                continue
            tools = [tool for tool in INITRAMFS if self.host.which(tool[0])]
            argv = tools[0] if tools and path.startswith("/etc/modprobe.d/") else []
            rebuild = rebuild or argv
            words = ("delete " if after is None else "restore ") + path
            found.append(Action(words, functools.partial(self.restore, path, after, entry.get("mode"), argv)))
        if rebuild:
            found.append(Action("rebuild the initial RAM disk", lambda: self.run(rebuild)))
        return found

    def directories(self) -> List[Action]:
        """Delete the directories that belong to gpu-ready completely."""
        return [
            Action("delete " + path, functools.partial(shutil.rmtree, path))
            for path in sorted(self.recorded.get("directories", {}))
            if self.host.isdir(path)
        ]

    def restore(self, path: str, after: Optional[bytes], mode: Optional[int], rebuild: List[str]) -> None:
        """Restore one file; the mark of a rebuild that it needs is written first."""
        if rebuild:
            rebuilds.mark_rebuild(rebuild, self.mark)
        if after is not None:
            files.write_atomic(path, after, mode)
        elif os.path.lexists(path):
            os.unlink(path)
            directory = os.path.dirname(path)
            if directory in DIRECTORIES and not os.listdir(directory):
                os.rmdir(directory)
        manifest.drop("files", [path], self.path)

    def services(self) -> List[Action]:
        """Restore the state of services that stay on the host."""
        found = []
        for unit, entry in sorted(self.recorded.get("services", {}).items()):
            verbs = ["enable" if entry.get("enabled") else "disable", "start" if entry.get("active") else "stop"]
            found.append(
                Action("%s and %s %s" % (verbs[0], verbs[1], unit), functools.partial(self.service, unit, verbs))
            )
        return found

    def service(self, unit: str, verbs: List[str]) -> None:
        """Switch a unit that still exists."""
        if self.host.run(["systemctl", "cat", unit]).rc == 0:
            for verb in verbs:
                self.run(["systemctl", verb, unit])
