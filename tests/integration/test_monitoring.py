"""Prometheus and Alertmanager on lab hosts: each fault raises its alert and no other, and containers are distinguished."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.alerts import PACKAGES, Server, install, wait_for_value
from tests.integration.fleet import Fleet, lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

A, B = "mon-a", "mon-b"
REQUESTED = {
    "gpu_monitoring": ["textfile"],
    "gpu_monitoring_node_exporter": "install",
    "gpu_monitoring_interval": 1,
    "gpu_monitoring_directory": "/var/lib/prometheus/node-exporter",
}
FAULTS: dict[str, tuple[str, str, str, str]] = {
    "a GPU fell off the bus": (A, "lab: gpu-off-bus", "lab: gpu-off-bus", "GpuMissing/critical"),
    "too hot": (B, "lab: nvml 1 throttle=0x40", "lab: nvml", "GpuThrottled/warning"),
    "somebody edited a file": (
        A,
        "cd /etc/modprobe.d && cp gpu-ready-blacklist-nouveau.conf /root && echo '#' >>gpu-ready-blacklist-nouveau.conf",
        "mv /root/gpu-ready-blacklist-nouveau.conf /etc/modprobe.d",
        "GpuNodeDrift/warning",
    ),
    "the service is stopped": (
        B,
        "systemctl stop gpu-ready-monitoring",
        "systemctl start gpu-ready-monitoring",
        "GpuMetricsMissing/warning",
    ),
    "a reset is required": (A, "lab: nvml 3 recovery_action=1", "lab: nvml", "GpuRecoveryRequired/warning"),
    "a narrow link": (B, "lab: nvml 0 pcie_width=8 util_gpu=90", "lab: nvml", "GpuPcieNarrow/warning"),
    "a package needs a reboot": (
        A,
        "touch /run/reboot-required",
        "rm /run/reboot-required",
        "GpuNodeRebootRequired/warning",
    ),
    "memory waits for a reset": (
        B,
        "lab: nvml 2 remapped_uncorrected=1 remap_pending=1",
        "lab: nvml",
        "GpuRowRemapPending/warning",
    ),
    "memory cannot be replaced": (
        A,
        "lab: nvml 2 remapped_uncorrected=9 remap_failed=1",
        "lab: nvml",
        "GpuRowRemapFailed/critical",
    ),
    "the driver does not answer": (
        B,
        "echo 'init_error = 999' >/etc/gpu-ready-lab/nvml-faults.conf",
        "lab: nvml",
        "GpuDriverDown/critical",
    ),
    "an uncorrected error": (A, "lab: nvml 1 ecc_uncorrected=1", "lab: nvml", "GpuEccUncorrected/critical"),
    "an Xid": (B, "lab: xid 79 0000:3b:00.0", "lab: xid", "GpuXid/critical"),
}
"""Host, what causes the fault and what heals it (a fault of the lab, or a command), and the alert. Two run at a time."""
COST = """
sed -i 's/"interval": 1,/"interval": 30,/' /usr/local/lib/gpu-ready/monitoring.json
systemctl restart gpu-ready-monitoring
sleep 60
awk -v ticks=$(getconf CLK_TCK) '{ print ($14 + $15 + $16 + $17) / ticks }' /proc/$(cat /run/gpu-ready-monitoring/pid)/stat
cd /usr/local/lib/gpu-ready
python3 -m gpu_ready_node.monitor.service monitoring.json --print | grep -c '^gpu_ready_gpu_info'
python3 -m gpu_ready_node.monitor.service monitoring.json --print | grep -c '^gpu_ready_container_memory_used_bytes.*docker'
sed -i 's/"interval": 30,/"interval": 1,/' /usr/local/lib/gpu-ready/monitoring.json
systemctl restart gpu-ready-monitoring
"""
"""Prints the CPU seconds of the service and its ended children since its start, its GPUs, and its rows of containers."""
NVML = "/etc/gpu-ready-lab/nvml-faults.conf"
FOUR_MORE = (
    "sed -E 's/^.gpu 0/[gpu 4/; s/^.gpu 1/[gpu 5/; s/^.gpu 2/[gpu 6/; s/^.gpu 3/[gpu 7/; "
    f"s/^uuid = GPU-./uuid = GPU-8/; s/^bus_id = 0000/bus_id = 0001/' /etc/gpu-ready-lab/nvml.conf >{NVML}"
)
"""Gives NVML four more GPUs."""
EXPORTER_STEP = "gpu_monitoring.node_exporter"
HOLD = "docker run --detach --name {} --network none --gpus all gpu-ready-lab/work /hold /dev/nvidia0"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    """Verified nodes with the service and node_exporter: the first has one already, the second gets it by gpu-ready."""
    fleet = Fleet("monitoring")
    fleet.up()
    with ThreadPoolExecutor() as pool:
        list(pool.map(install, [fleet] * 2, [A, B], [PACKAGES, "curl podman"]))
    run = fleet.play(extra=REQUESTED, holds=["gpu_monitoring.textfile", "gpu_monitoring.node_exporter"])
    assert run.rc == 0, run.screen[-4000:]
    assert EXPORTER_STEP in run.steps(B) and EXPORTER_STEP not in run.steps(A)
    return fleet


@pytest.fixture(scope="module")
def server(fleet: Fleet) -> Server:
    server = Server(fleet, A)
    server.start(A, B)
    return server


def do(fleet: Fleet, host: str, what: str, verb: str) -> None:
    """Cause or heal a fault."""
    kind, _, words = what.partition("lab: ")
    if kind:
        fleet.ssh(host, what)
    else:
        lab(verb, host, *words.split())


def test_sound_nodes_raise_nothing(server: Server) -> None:
    # The configuration of Debian's package scraped this node under another name until ours took its place.
    verified = 'gpu_ready_verified{instance!="localhost:9100"}'
    wait_for_value(lambda: {(one["instance"], one["value"]) for one in server.query(verified)}, {(A, 1.0), (B, 1.0)})
    server.wait_for(set(), steady=5)


@pytest.mark.parametrize("first", range(0, len(FAULTS), 2))
def test_each_fault_raises_its_alert_and_no_other(server: Server, first: int) -> None:
    """A fault on each host at a time; they end before the next begin."""
    faults = list(FAULTS.values())[first : first + 2]
    try:
        for host, cause, _, _ in faults:
            do(server.fleet, host, cause, "fault")
        server.wait_for({f"{alert} of {host}" for host, _, _, alert in faults}, steady=3)
    finally:
        for host, _, cure, _ in faults:
            do(server.fleet, host, cure, "heal")
    server.wait_for(set())


def use_of(server: Server, host: str, metric: str) -> dict[str, float]:
    """Return what the containers of a host use of its first GPU, by engine and name."""
    found = server.query(f'gpu_ready_container_{metric}{{instance="{host}",gpu="0"}}')
    return {f"{one['engine']} {one.get('container', '')}".strip(): one["value"] for one in found}


def test_containers_of_docker_and_podman_that_share_a_gpu_are_distinguished(server: Server) -> None:
    """NVML's list of processes is the lab's; containers, their cgroups and names are docker's and podman's."""
    for host in (A, B):
        lab("work", host, "container-gpus")  # makes the image
    server.fleet.ssh(A, f"{HOLD.format('train')} && {HOLD.format('infer')}")
    server.fleet.ssh(B, "docker save gpu-ready-lab/work | podman load -q")
    server.fleet.ssh(B, "podman run -d --name notebook --network none --device /dev/nvidia0 gpu-ready-lab/work /hold")
    pids = {
        "train": server.fleet.ssh(A, "docker inspect -f '{{.State.Pid}}' train").strip(),
        "infer": server.fleet.ssh(A, "docker inspect -f '{{.State.Pid}}' infer").strip(),
        "notebook": server.fleet.ssh(B, "podman inspect -f '{{.State.Pid}}' notebook").strip(),
    }
    try:
        rows = f"processes = {pids['train']}:4096:60 {pids['infer']}:512:15 1:16:0"
        server.write("/etc/gpu-ready-lab/nvml-faults.conf", f"[gpu 0]\n{rows}")
        server.fleet.ssh(
            B, f"printf '[gpu 0]\\nprocesses = {pids['notebook']}:2048:90' >/etc/gpu-ready-lab/nvml-faults.conf"
        )
        mib = 1 << 20
        memory = {"docker train": 4096 * mib, "docker infer": 512 * mib, "host": 16 * mib}
        duty = {"docker train": 0.6, "docker infer": 0.15, "host": 0}
        wait_for_value(lambda: use_of(server, A, "memory_used_bytes"), memory)
        wait_for_value(lambda: use_of(server, A, "duty_cycle_ratio"), duty)
        wait_for_value(lambda: use_of(server, B, "memory_used_bytes"), {"podman notebook": 2048 * mib})
        server.wait_for(set())
    finally:
        for host in (A, B):
            lab("heal", host, "nvml")
        server.fleet.ssh(A, "docker rm -f train infer")
        server.fleet.ssh(B, "podman rm -f -t 1 notebook")


def test_drift_of_the_audit_raises_its_alert(server: Server) -> None:
    """The report of audit.yml, in the directory that the exporter of the control node (here: the first host) reads."""
    fleet = server.fleet
    prom = f"{REQUESTED['gpu_monitoring_directory']}/gpu_ready_fleet.prom"
    reported = REQUESTED | {"gpu_report_formats": ["prometheus"]}
    fleet.ssh(B, "apt-mark unhold nvidia-driver-cuda")
    try:
        audit = fleet.play(playbook="playbooks/audit.yml", extra=reported)
        assert "drift" in audit.row(B) and "ok" in audit.row(A), audit.screen[-3000:]
        server.write(prom, (fleet.reports / "latest-audit.prom").read_text())
        server.wait_for({f"GpuHostDrift/warning of {B}"})
    finally:
        fleet.ssh(B, "apt-mark hold nvidia-driver-cuda")
        fleet.ssh(A, f"rm -f {prom}")


def test_the_service_costs_less_than_a_hundredth_of_a_core(fleet: Fleet) -> None:
    """CPU time of the first minute with the default interval, the start of Python and the children that ask NVML included."""
    lab("work", A, "container-gpus")  # makes the image
    names = [f"cost-{number}" for number in range(8)]
    try:
        fleet.ssh(A, f"for name in {' '.join(names)}; do {HOLD.format('$name')}; done", limit=300)
        pids = fleet.ssh(A, f"docker inspect -f '{{{{.State.Pid}}}}' {' '.join(names)}").split()
        rows = "".join(f"[gpu {gpu}]\nprocesses = {pid}:1024:50 1:16:0\n" for gpu, pid in enumerate(pids))
        fleet.ssh(A, f"{FOUR_MORE} && printf '%s' '{rows}' >>{NVML}")
        seconds, gpus, containers = fleet.ssh(A, COST, limit=180).split()
    finally:
        lab("heal", A, "nvml")
        fleet.ssh(A, f"docker rm -f {' '.join(names)}")
    print(f"{seconds} s of CPU time in a minute, {float(seconds) / 0.6:.2f} % of a core")
    assert (gpus, containers) == ("8", "8") and 0 < float(seconds) < 0.6


def test_dcgm_is_installed_in_one_pair_audited_and_removed(fleet: Fleet) -> None:
    """Packages, units and programs are the lab's stand-ins; package manager, holds and systemd are real."""
    requested = REQUESTED | {"gpu_monitoring": ["textfile", "dcgm"]}
    names = "datacenter-gpu-manager-4-core datacenter-gpu-manager-exporter"
    run = fleet.play("--limit", B, extra=requested, holds=["gpu_monitoring.dcgm"])
    assert run.rc == 0, run.screen[-4000:]
    assert run.steps(B) == ["gpu_monitoring.dcgm"]  # the driver's repository has the packages
    versions = fleet.ssh(B, f"dpkg-query -W -f '${{Version}} ' {names}").split()
    assert versions == ["1:4.5.3-1", "4.8.2-1"]
    assert set(names.split()) <= set(fleet.ssh(B, "apt-mark showhold").split())
    served = fleet.ssh(B, "curl -sf --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:9400/metrics")
    assert served.count("DCGM_FI_DEV_GPU_TEMP{") == 4 and "DCGM_FI_DEV_FB_USED{" in served
    second = fleet.play("--limit", B, extra=requested)
    assert (second.calls[B], second.recap(B)["changed"]) == (1, 0)
    fleet.ssh(B, "systemctl stop nvidia-dcgm-exporter")
    audit = fleet.play("--limit", B, playbook="playbooks/audit.yml", extra=requested)
    assert "DCGM or its exporter does not run" in audit.screen
    removed = fleet.play("--limit", B, extra=REQUESTED, holds=["gpu_monitoring.remove_dcgm"])
    assert removed.rc == 0 and removed.steps(B) == ["gpu_monitoring.remove_dcgm"], removed.screen[-4000:]
    assert fleet.ssh(B, f"dpkg-query -W -f '${{db:Status-Abbrev}}' {names} 2>/dev/null || :").strip() == ""
    assert "datacenter" not in fleet.ssh(B, "apt-mark showhold")
    paths = "/etc/dcgm-exporter /etc/systemd/system/nvidia-dcgm-exporter.service.d"
    assert fleet.ssh(B, f"find {paths} ! -type d 2>/dev/null || :") == ""  # uninstall.yml removes the directories


def test_without_the_metrics_node_exporter_of_gpu_ready_is_removed_and_that_of_others_is_kept(fleet: Fleet) -> None:
    # The pipes that stand for the kernel's log: without a reader, each generator of systemd waits at them for 90 s (its limit) to write.
    for host in (A, B):
        fleet.ssh(host, "rm -f /dev/kmsg")
    removed = fleet.play(
        extra=REQUESTED | {"gpu_monitoring": []},
        holds=["gpu_monitoring.remove", "gpu_monitoring.remove_node_exporter"],
    )
    assert removed.rc == 0, removed.screen[-4000:]
    assert removed.steps(A) == ["gpu_monitoring.remove"]
    assert removed.steps(B) == ["gpu_monitoring.remove", "gpu_monitoring.remove_node_exporter"]
    known = "dpkg-query -W -f '${db:Status-Abbrev}' prometheus-node-exporter 2>/dev/null || :"
    assert fleet.ssh(A, known).strip() == "ii" and fleet.ssh(B, known).strip() == ""
    assert "node_load1" in fleet.ssh(A, "curl -sf http://127.0.0.1:9100/metrics")
