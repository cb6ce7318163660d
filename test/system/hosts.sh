#!/usr/bin/env bash
# hosts.sh HOSTS RANKS COMMAND…: runs COMMAND by mpirun, RANKS of them on each of 2 to 200 hosts that are not there: each is a
# set of Linux namespaces with a name, a network, a /dev/shm of its own, so that MPI takes it for another machine. Their
# cables meet in a bridge on the head, where mpirun runs. Needs root and iproute2; leaves nothing behind, however it ends,
# because all of it lives in one process namespace that ends with its first process.
set -euo pipefail

if [[ ${1:-} == inside ]]; then
  shift
else
  scratch=$(mktemp -d /tmp/ronda-hosts.XXXXXX) # short: sockets' names lie below it
  trap 'rm -rf "$scratch"' EXIT
  unshare --net --uts --mount --ipc --pid --fork --kill-child --mount-proc "$BASH" "$0" inside "$scratch" "$@"
  exit
fi

scratch=$1 hosts=$2 ranks=$3
shift 3
network=10.77.0
address() { echo "$network.$(($1 + 1))"; } # address HOST: 0 is the head

{
  echo '127.0.0.1 localhost'
  for ((host = 0; host <= hosts; ++host)); do echo "$(address $host) ronda$host"; done
} >"$scratch/hosts"
mount --bind "$scratch/hosts" /etc/hosts
hostname ronda0
ip link set lo up
ip link add bridge type bridge
ip addr add "$(address 0)/24" dev bridge
ip link set bridge up

list=
for ((host = 1; host <= hosts; ++host)); do
  ready=$scratch/ready$host
  # What is to outlive this line holds the namespaces; a host is entered through it.
  unshare --net --uts --mount --ipc "$BASH" -c '
    hostname "$1" && mount -t sysfs none /sys && mount -t tmpfs none /dev/shm && ip link set lo up && touch "$2"
    exec sleep infinity' - "ronda$host" "$ready" &
  echo $! >"$scratch/ronda$host"
  for ((i = 0; i < 500; ++i)); do
    [[ ! -e $ready ]] || break
    sleep 0.02
  done
  ip link add "cable$host" type veth peer name eth0 netns $!
  ip link set "cable$host" master bridge up
  nsenter --target $! --net ip addr add "$(address $host)/24" dev eth0
  nsenter --target $! --net ip link set eth0 up
  list+=${list:+,}ronda$host:$ranks
done

# mpirun calls it as it would call ssh: agent HOST COMMAND…
cat >"$scratch/agent" <<END
#!/bin/sh
host=\$1
shift
exec nsenter --target \$(cat "$scratch/\$host") --net --uts --mount --ipc --wd="$PWD" -- /bin/sh -c "\$*"
END
chmod +x "$scratch/agent"

# Open MPI 4 and 5 have other names for the agent.
export OMPI_MCA_plm_rsh_agent=$scratch/agent PRTE_MCA_plm_ssh_agent=$scratch/agent
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self,vader OMPI_MCA_btl_tcp_if_include=$network.0/24
export OMPI_MCA_orte_tmpdir_base=$scratch OMPI_MCA_mpi_yield_when_idle=1 TMPDIR=$scratch
mpirun --host "$list" -n $((hosts * ranks)) --bind-to none --oversubscribe "$@"
