"""The lab's command line: python -m gpu_ready_lab COMMAND."""

import argparse
import contextlib
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from . import check, cleanup, engine, faults, fleet, hosts, inventory, kubernetes, paths, services, states, work
from .fleet import Fleet
from .say import LabError, say, warn


def _up(args: argparse.Namespace) -> int:
    with _in_use(fcntl.LOCK_SH):
        read = fleet.read(args.fleet)
        return _start(fleet.choose(read, args.hosts, args.sample))


@contextlib.contextmanager
def _in_use(kind: int) -> Iterator[None]:
    """Prevent removal of the lab while a fleet is started; the lock file is in the cache, which outlives the lab."""
    paths.cache().mkdir(parents=True, exist_ok=True)
    with (paths.cache() / "in-use.lock").open("w") as lock:
        fcntl.flock(lock, kind)
        yield


def _start(requested: fleet.Fleet) -> int:
    engine.start(hosts.remove_interrupted)
    hosts.remove_leftovers(requested.name)
    offered = services.start({host.distribution for host in requested.hosts}, requested.vendors)
    existing = {r.host: r for r in hosts.existing() if r.fleet == requested.name}
    before = {name for name, r in existing.items() if r.state == "running"}
    new = Fleet(requested.name, tuple(host for host in requested.hosts if host.name not in existing))
    running = hosts.up(requested, offered.proxy, states.ensure(new, offered.proxy, offered.variables))
    order = {host.name: running[host.name].address for host in requested.hosts}
    keys = {name: hosts.host_key(running[name]) for name in order}
    path = inventory.write(requested, order, keys, offered.variables)
    state = "was up" if before >= set(order) else "started"
    say(f"{requested.name} {state}: {len(order)} hosts; inventory {_relative(path)}")
    return 0


def _relative(path: Path) -> str:
    return os.path.relpath(path)


def _down(args: argparse.Namespace) -> int:
    if args.fleet is not None:
        name = fleet.read(args.fleet).name if args.fleet.suffix in (".yml", ".yaml") else str(args.fleet)
        removed = [r for r in hosts.existing() if r.fleet == name]
        hosts.remove(removed)
        if paths.fleet_directory(name).exists():
            shutil.rmtree(paths.fleet_directory(name))
        say(f"{name} stopped: {len(removed)} hosts removed" if removed else f"{name} was not up")
        if hosts.existing():
            return 0
        try:
            with _in_use(fcntl.LOCK_EX | fcntl.LOCK_NB):
                cleanup.down(everything=args.all)
        except BlockingIOError:
            say("another fleet is being started: the lab stays up")
        return 0
    cleanup.down(everything=args.all)
    return 0


def _status(args: argparse.Namespace) -> int:
    running = hosts.existing()
    print(f"engine: {'running' if engine.answers() else 'not running'}; cache: {paths.cache()}")
    for line in services.status():
        print(line)
    for r in running:
        print(f"{r.fleet + '/' + r.host:30} {r.address:14} {r.state}")
    return 0


def _ssh(args: argparse.Namespace) -> int:
    running = hosts.find(args.host)
    config = paths.fleet_directory(running.fleet) / "ssh_config"
    if not config.exists():
        raise LabError(f"{config} is missing: run `up` for the fleet {running.fleet} from this checkout")
    os.execv("/usr/bin/ssh", ["ssh", "-F", str(config), running.host, *args.command])


def _inventory(args: argparse.Namespace) -> int:
    names = sorted({r.fleet for r in hosts.existing()})
    if args.fleet:
        names = [args.fleet]
    if not names:
        raise LabError("no fleet is up: start one with `up FLEET.yml`")
    for name in names:
        path = paths.fleet_directory(name) / "gpu_hosts"
        if not path.exists():
            raise LabError(f"{path} is missing: run `up` for the fleet {name} from this checkout")
        print(path)
    return 0


def _states(args: argparse.Namespace) -> int:
    known = fleet.states()
    unknown = sorted({*args.names} - {*known})
    if unknown:
        raise LabError(f"lab/states.yml has no state {', '.join(unknown)}; it has {', '.join(known)}")
    names = args.names or tuple(known)
    with _in_use(fcntl.LOCK_SH):
        engine.start(hosts.remove_interrupted)
        offered = services.start({known[name].distribution for name in names})
        found = states.ensure(
            Fleet("states", tuple(replace(known[name], state=name) for name in names)), offered.proxy, offered.variables
        )
    for name, state in found.items():
        print(f"{name}: {state.image}")
    return 0


def _kubernetes(args: argparse.Namespace) -> int:
    with _in_use(fcntl.LOCK_SH):
        print(kubernetes.ensure())
    return 0


def _check(args: argparse.Namespace) -> int:
    return check.main(fleet.read(args.fleet), args.report)


def _kill(args: argparse.Namespace) -> int:
    hosts.kill(hosts.find(args.host))
    return 0


def _power_cycle(args: argparse.Namespace) -> int:
    running = hosts.find(args.host)
    if running.state == "running":
        hosts.kill(running)
    hosts.power_on(running)
    say(f"{running.host} is up again")
    return 0


def _fault(args: argparse.Namespace) -> int:
    faults.inject(hosts.find(args.host), args.name, args.arguments)
    return 0


def _heal(args: argparse.Namespace) -> int:
    faults.heal(hosts.find(args.host), args.name)
    return 0


def _work(args: argparse.Namespace) -> int:
    running = hosts.find(args.host)
    work.start(running.container, running.host, args.names)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run a lab command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="gpu_ready_lab", description="Simulated GPU hosts and a vendor mirror on one machine."
    )
    commands = parser.add_subparsers(dest="command_name", required=True)
    up = commands.add_parser("up", help="start the hosts of a fleet file (those that run are left alone)")
    up.add_argument("fleet", type=Path)
    up.add_argument("--sample", action="store_true", help="without the hosts that the fleet file marks as extra")
    up.add_argument("--hosts", type=lambda text: text.split(","), help="only these hosts of the file: NAME,NAME")
    up.set_defaults(run=_up)
    down = commands.add_parser("down", help="stop and remove everything except the cache, or one fleet")
    down.add_argument("fleet", type=Path, nargs="?", help="a fleet file or a fleet's name: only its hosts")
    down.add_argument("--all", action="store_true", help="the cache too")
    down.set_defaults(run=_down)
    commands.add_parser("status", help="what runs").set_defaults(run=_status)
    ssh = commands.add_parser("ssh", help="a shell on a host, or one command on it")
    ssh.add_argument("host")
    ssh.add_argument("command", nargs=argparse.REMAINDER)
    ssh.set_defaults(run=_ssh)
    listing = commands.add_parser("inventory", help="print the path of the inventory of each fleet that is up")
    listing.add_argument("fleet", nargs="?")
    listing.set_defaults(run=_inventory)
    making = commands.add_parser("states", help="make the states that are missing in the cache, and print their paths")
    making.add_argument("names", nargs="*", help="names of lab/states.yml; default: all")
    making.set_defaults(run=_states)
    building = commands.add_parser(
        "kubernetes", help="build Kubernetes from Debian's source package, unless the cache has it"
    )
    building.set_defaults(run=_kubernetes)
    compare = commands.add_parser("check", help="compare a report with what the fleet file expects")
    compare.add_argument("fleet", type=Path)
    compare.add_argument("report", type=Path)
    compare.set_defaults(run=_check)
    kill = commands.add_parser("kill", help="cut a host's power")
    kill.add_argument("host")
    kill.set_defaults(run=_kill)
    cycle = commands.add_parser("power-cycle", help="cut a host's power and start it again")
    cycle.add_argument("host")
    cycle.set_defaults(run=_power_cycle)
    names = "; ".join(f"{name}: {what}" for name, what in faults.described().items())
    fault = commands.add_parser("fault", help="cause a fault for one host, until it is healed")
    fault.add_argument("host")
    fault.add_argument("name", help=names.replace("%", "%%"))
    fault.add_argument("arguments", nargs="*")
    fault.set_defaults(run=_fault)
    heal = commands.add_parser("heal", help="end a fault of a host")
    heal.add_argument("host")
    heal.add_argument("name", help="the fault's name, or all")
    heal.set_defaults(run=_heal)
    kinds = "; ".join(f"{name}: {what}" for name, what in work.described().items())
    working = commands.add_parser("work", help="start work on a host, or start it again")
    working.add_argument("host")
    working.add_argument("names", nargs="+", metavar="name", choices=work.described(), help=kinds)
    working.set_defaults(run=_work)
    args = parser.parse_args(argv)
    try:
        return int(args.run(args))
    except LabError as error:
        warn(str(error))
        return 1
    except KeyboardInterrupt:
        warn("interrupted; `down` removes what was started")
        return 130


if __name__ == "__main__":
    sys.exit(main())
