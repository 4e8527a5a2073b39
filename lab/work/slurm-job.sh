# A job of a Slurm cluster, whose only node is this host
install() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 --no-install-recommends \
        install slurmctld slurmd slurm-client munge >/dev/null
}
if ! command -v slurmd >/dev/null || ! command -v slurmctld >/dev/null; then
    command -v apt-get >/dev/null || fail "slurm is installed with apt only"
    install || {
        apt-get -qq update
        install
    }
fi
dpkg --compare-versions "$(dpkg-query --show --showformat '${Version}' slurmd)" ge 23 ||
    fail "this slurm needs control groups that lab hosts do not have: use debian13"
host=$(hostname)
mkdir -p /etc/slurm
cat >/etc/slurm/slurm.conf <<C
ClusterName=lab
SlurmctldHost=$host
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=1
NodeName=$host CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
C
echo CgroupPlugin=disabled >/etc/slurm/cgroup.conf
systemctl start munge slurmctld slurmd
idle() { sinfo --noheader --format %T | grep -q idle; }
runs() { squeue --noheader --states R | grep -q .; }
scancel --user root
wait_until idle
sbatch --job-name work --output /dev/null --wrap 'sleep 100000' >/dev/null
wait_until runs
