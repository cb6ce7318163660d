#!/usr/bin/env bash
# slurm.sh NODES CORES COMMAND…: runs COMMAND (sbatch, srun) where Slurm has 1 to 20 nodes of so many cores each, all of
# them this machine, but with a name and a /dev/shm of its own, so that MPI takes it for another. Needs root, iproute2, munge
# and Debian's slurm-wlm; the machine's own Slurm is left alone. Leaves nothing behind, as netns.sh does.
set -euo pipefail

if [[ ${1:-} == inside ]]; then
  shift
else
  scratch=$(mktemp -d /tmp/ronda-slurm.XXXXXX) # short: sockets' names lie below it
  trap 'rm -rf "$scratch"' EXIT
  unshare --net --uts --mount --ipc --pid --fork --kill-child --mount-proc "$BASH" "$0" inside "$scratch" "$@"
  exit
fi

scratch=$1 nodes=$2 cores=$3
shift 3
hostname ronda0
ip link set lo up
ip link add bridge type bridge # Open MPI does not take the loopback for a way to another node
ip addr add 10.77.0.1/24 dev bridge
ip link set bridge up
{
  echo '127.0.0.1 localhost'
  for ((node = 0; node <= nodes; ++node)); do echo "10.77.0.1 ronda$node"; done
} >"$scratch/hosts"
mount --bind "$scratch/hosts" /etc/hosts

eventually() { # eventually COMMAND…: succeeds within 30 s
  local tries
  for ((tries = 0; tries < 300; ++tries)); do
    ! "$@" >/dev/null 2>&1 || return 0
    sleep 0.1
  done
  echo "slurm.sh: waited 30 s for: $*" >&2
  tail -n 5 "$scratch"/*.log >&2
  exit 1
}

mkdir "$scratch/munge"
chmod 755 "$scratch"
head -c 128 /dev/urandom >"$scratch/munge/key"
chmod 600 "$scratch/munge/key"
munged --force --key-file "$scratch/munge/key" --socket "$scratch/munge/socket" --pid-file "$scratch/munge/pid" \
  --log-file "$scratch/munged.log" --seed-file "$scratch/munge/seed" 2>/dev/null

export SLURM_CONF=$scratch/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=ronda
SlurmctldHost=ronda0(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$scratch/munge/socket,cred_expire=5
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool.%n
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.%n.pid
SlurmctldLogFile=$scratch/slurmctld.log
SlurmdLogFile=$scratch/slurmd.%n.log
# Neither cgroups nor accounting; the cores of a node are as many as are said.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0 # a batch script starts as soon as it can
END
echo CgroupPlugin=cgroup/v1 >"$scratch/cgroup.conf" # one has to be named; nothing uses it
for ((node = 1; node <= nodes; ++node)); do
  echo "NodeName=ronda$node NodeAddr=10.77.0.1 Port=$((17000 + node)) CPUs=$cores" >>"$SLURM_CONF"
done
echo "PartitionName=all Nodes=ronda[1-$nodes] Default=YES State=UP" >>"$SLURM_CONF"

mkdir "$scratch/state"
slurmctld
for ((node = 1; node <= nodes; ++node)); do
  # A folder of settings each, because PMIx's files of two nodes would have the same names.
  folder=$scratch/ronda$node
  mkdir "$folder" "$folder/pmix" "$scratch/spool.ronda$node"
  ln -s ../slurm.conf ../cgroup.conf "$folder"
  echo "PMIxCliTmpDirBase=$folder/pmix" >"$folder/mpi.conf"
  SLURM_CONF=$folder/slurm.conf unshare --uts --mount "$BASH" -c '
    hostname "$1" && mount -t tmpfs none /dev/shm && exec slurmd -f "$SLURM_CONF"' - "ronda$node"
done
all_idle() { (($(sinfo --noheader --Node --states=idle --format=%N | sort -u | wc -l) == nodes)); }
eventually all_idle
export OMPI_MCA_btl=^ofi # tests on one host do without any network
export OMPI_MCA_mpi_yield_when_idle=1
"$@"
