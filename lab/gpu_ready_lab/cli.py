"""The lab's command line: python -m gpu_ready_lab COMMAND."""

import argparse
import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import check, cleanup, engine, faults, fleet, hosts, inventory, kubernetes, mirror, paths, states, work
from .fleet import Fleet
from .say import LabError, locked, say, warn


def _up(args: argparse.Namespace) -> None:
    with _in_use(fcntl.LOCK_SH):
        read = fleet.read(args.fleet)
        _start(fleet.choose(read, args.hosts, args.sample))


def _in_use(kind: int) -> contextlib.AbstractContextManager[None]:
    """Prevent removal of the lab while a fleet is started; the lock file is in the cache, which outlives the lab."""
    return locked(paths.cache() / "in-use.lock", kind)


def _start(requested: fleet.Fleet) -> None:
    engine.start(hosts.remove_interrupted)
    hosts.remove_leftovers(requested.name)
    offered = mirror.start({host.distribution for host in requested.hosts}, requested.vendors == fleet.MIRROR)
    existing = {r.host: r for r in hosts.existing() if r.fleet == requested.name}
    before = {name for name, r in existing.items() if r.state == "running"}
    new = Fleet(requested.name, tuple(host for host in requested.hosts if host.name not in existing))
    running = hosts.up(requested, offered.proxy, states.ensure(new, offered.proxy, offered.variables))
    order = {host.name: running[host.name].address for host in requested.hosts}
    keys = {name: hosts.host_key(running[name]) for name in order}
    path = inventory.write(requested, order, keys, offered.variables)
    state = "was up" if before >= set(order) else "started"
    say(f"{requested.name} {state}: {len(order)} hosts; inventory {os.path.relpath(path)}")


def _down(args: argparse.Namespace) -> None:
    if args.fleet is not None:
        name = fleet.read(args.fleet).name if args.fleet.suffix in (".yml", ".yaml") else str(args.fleet)
        removed = [r for r in hosts.existing() if r.fleet == name]
        hosts.remove(removed)
        if paths.fleet_directory(name).exists():
            shutil.rmtree(paths.fleet_directory(name))
        say(f"{name} stopped: {len(removed)} hosts removed" if removed else f"{name} was not up")
        if hosts.existing():
            return
        try:
            with _in_use(fcntl.LOCK_EX | fcntl.LOCK_NB):
                cleanup.down(everything=args.all)
        except BlockingIOError:
            say("another fleet is being started: the lab stays up")
        return
    cleanup.down(everything=args.all)


def _status(args: argparse.Namespace) -> None:
    running = hosts.existing()
    print(f"engine: {'running' if engine.answers() else 'not running'}; cache: {paths.cache()}")
    print(mirror.status())
    for r in running:
        print(f"{r.fleet + '/' + r.host:30} {r.address:14} {r.state}")


def _ssh(args: argparse.Namespace) -> int:
    running = hosts.find(args.host)
    config = paths.fleet_directory(running.fleet) / "ssh_config"
    if not config.exists():
        raise LabError(f"{config} is missing: run `up` for the fleet {running.fleet} from this checkout")
    os.execv("/usr/bin/ssh", ["ssh", "-F", str(config), running.host, *args.command])


def _kubernetes(args: argparse.Namespace) -> None:
    with _in_use(fcntl.LOCK_SH):
        print(kubernetes.ensure())


def _power_cycle(args: argparse.Namespace) -> None:
    running = hosts.find(args.host)
    if running.state == "running":
        hosts.kill(running)
    hosts.power_on(running)
    say(f"{running.host} is up again")


def _work(args: argparse.Namespace) -> None:
    running = hosts.find(args.host)
    work.start(running.container, running.host, args.names)


def _later(args: argparse.Namespace) -> None:
    served = fleet.read(args.fleet)
    addresses = [running.address for running in hosts.existing() if running.fleet == served.name]
    mirror.serve_later({host.distribution for host in served.hosts}, addresses)
    say(f"{served.name}: {len(addresses)} hosts get what the vendors will have in six months")


Command = Callable[[argparse.Namespace], int | None]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpu_ready_lab", description="Simulated GPU hosts and a vendor mirror on one machine."
    )
    commands = parser.add_subparsers(dest="command_name", required=True)

    def command(name: str, run: Command, what: str, *positional: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=what)
        made.set_defaults(run=run)
        for argument in positional:
            made.add_argument(argument)
        return made

    up = command("up", _up, "start the hosts of a fleet file (those that run are left alone)")
    up.add_argument("fleet", type=Path)
    up.add_argument("--sample", action="store_true", help="without the hosts that the fleet file marks as extra")
    up.add_argument("--hosts", type=lambda text: text.split(","), help="only these hosts of the file: NAME,NAME")
    down = command("down", _down, "stop and remove everything except the cache, or one fleet")
    down.add_argument("fleet", type=Path, nargs="?", help="a fleet file or a fleet's name: only its hosts")
    down.add_argument("--all", action="store_true", help="the cache too")
    command("status", _status, "what runs")
    ssh = command("ssh", _ssh, "a shell on a host, or one command on it", "host")
    ssh.add_argument("command", nargs=argparse.REMAINDER)
    command("kubernetes", _kubernetes, "build Kubernetes from Debian's source package, unless the cache has it")
    compare = command(
        "check", lambda args: check.main(fleet.read(args.fleet), args.report),
        "compare a report with what the fleet file expects",
    )  # fmt: skip
    compare.add_argument("fleet", type=Path)
    compare.add_argument("report", type=Path)
    command("kill", lambda args: hosts.kill(hosts.find(args.host)), "cut a host's power", "host")
    command("power-cycle", _power_cycle, "cut a host's power and start it again", "host")
    fault = command(
        "fault", lambda args: faults.inject(hosts.find(args.host), args.name, args.arguments),
        "cause a fault for one host, until it is healed", "host",
    )  # fmt: skip
    names = "; ".join(f"{name}: {what}" for name, what in faults.described().items())
    fault.add_argument("name", help=names.replace("%", "%%"))
    fault.add_argument("arguments", nargs="*")
    heal = command("heal", lambda args: faults.heal(hosts.find(args.host), args.name), "end a fault of a host", "host")
    heal.add_argument("name", help="the fault's name, or all")
    later = command(
        "later", _later, "serve the hosts of a fleet, until they are removed, what vendors will have in six months"
    )
    later.add_argument("fleet", type=Path)
    working = command("work", _work, "start work on a host, or start it again", "host")
    kinds = "; ".join(f"{name}: {what}" for name, what in work.described().items())
    working.add_argument("names", nargs="+", metavar="name", choices=work.described(), help=kinds)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a lab command; returns the exit status."""
    args = _parser().parse_args(argv)
    try:
        return int(args.run(args) or 0)
    except LabError as error:
        warn(str(error))
        return 1
    except KeyboardInterrupt:
        warn("interrupted; `down` removes what was started")
        return 130


if __name__ == "__main__":
    sys.exit(main())
