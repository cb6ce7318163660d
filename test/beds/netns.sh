#!/usr/bin/env bash
# Hosts that are not there, for MPI programs over several of them: each is a set of Linux namespaces. --help says how to use it.
#
# All of it lives in one process namespace, which ends with its first process, and so do the hosts, their cables and whatever
# still runs: nothing is left behind, however it ends, and any number of beds can be up at once.
set -euo pipefail
beds=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=10.77.0 management=10.78.0 # the networks; host N has address N+1 in both, the head is host 0

usage() {
  cat <<END
Usage: netns.sh [OPTION]… HOSTS RANKS COMMAND…
Runs COMMAND on the head of a cluster of 1 to 200 hosts, ronda1, ronda2, …, each with a name, a process table, a /dev/shm and a
cable of its own. There, mpirun runs on these hosts, RANKS on each (its other options are yours):

  netns.sh --rate 1gbit 4 1 mpirun build/release/apps/bench_allreduce --algorithm ring
  netns.sh 2 2 bash -c 'mpirun train & sleep 3; bed cut ronda2; wait \$!'

  --rate RATE      what a cable carries each way, as tc writes it: 200mbit, 1gbit (unlimited)
  --delay TIME     how long a packet takes from host to host: 50us, 2ms (none); takes a core's time, and /dev/net/tun
  --switch FILE    the program that delays them (build/release/test/beds/delayed_switch)

In COMMAND, the word bed does to the cluster what may happen to it:
$("$beds/netns_bed.sh" --help | sed '1d; s/^/  /')

Two networks: the data network ($data.0/24, data0), which has these cables and which MPI sends its messages over, and the
management network ($management.0/24, management0), as fast as it can, by which mpirun reaches the hosts, and where their names lie.
Needs root, iproute2, util-linux and Open MPI. Exit status: that of COMMAND; 77 where this machine cannot do it, and why; 2 wrong
usage.
END
}

cannot() {
  echo "netns.sh: skipped: $*" >&2
  exit 77
}

fail() {
  echo "netns.sh: $*" >&2
  exit 2
}

build_it() { # build_it ARGUMENTS…: in namespaces of its own, which go when this process does
  ((EUID == 0)) || cannot 'needs root'
  local tool
  for tool in unshare nsenter ip tc mpirun; do
    command -v $tool >/dev/null || cannot "needs $tool"
  done
  unshare --net --uts --mount --ipc --pid --fork true 2>/dev/null || cannot 'no namespaces here'
  scratch=$(mktemp -d /tmp/ronda-bed.XXXXXX) # short: sockets' names lie below it
  trap 'rm -rf "$scratch"' EXIT
  trap 'kill -KILL $cluster' INT TERM HUP
  unshare --net --uts --mount --ipc --pid --fork --kill-child --mount-proc "$BASH" "$0" inside "$scratch" "$@" <&0 &
  cluster=$!
  local status=0
  wait $cluster || status=$?
  wait $cluster 2>/dev/null || : # the first may have been interrupted
  exit $status
}

start_host() { # start_host NAME: the first process of its namespaces takes in orphans; what enters them enters through it
  local name=$1 ready=$scratch/$1.ready outer i
  unshare --net --uts --mount --ipc --pid --fork --kill-child --mount-proc "$BASH" -c '
    hostname "$1" && mount -t sysfs none /sys && mount -t tmpfs none /dev/shm && ip link set lo up && touch "$2"
    trap : TERM INT HUP
    while :; do sleep infinity & wait $!; done' - "$name" "$ready" </dev/null >/dev/null 2>"$scratch/$name.log" &
  outer=$!
  for ((i = 0; i < 500; ++i)); do
    [[ ! -e $ready ]] || break
    sleep 0.02
  done
  [[ -e $ready ]] || cannot "$name does not start: $(tail -1 "$scratch/$name.log")"
  tr -d ' ' <"/proc/$outer/task/$outer/children" >"$scratch/$name"
}

plug_in() { # plug_in HOST NETWORK DEVICE: gives the device an address and turns it on
  nsenter --target "$(cat "$scratch/ronda$1")" --net "$BASH" -ec '
    ip addr add "$1/24" dev "$2"
    ip link set "$2" up' - "$2.$(($1 + 1))" "$3"
}

cable() { # cable HOST NETWORK DEVICE BRIDGE: from the host to a bridge on the head
  ip link add "$4$1" type veth peer name "$3" netns "$(cat "$scratch/ronda$1")"
  ip link set "$4$1" master "$4" up
  plug_in "$1" "$2" "$3"
}

# Both ends of a cable keep to the rate, the host's and the switch's, so that packets queue where they would. A burst has to hold
# what the kernel passes on in one go, 64 KiB.
shape() { tc qdisc replace dev "$1" root tbf rate "$rate" burst 128kb latency 20ms; } # shape DEVICE

# Each host's end has cubic, as most machines do: bbr cannot reach what such a link carries.
prepare_data() { # prepare_data HOST
  nsenter --target "$(cat "$scratch/ronda$1")" --net "$BASH" -ec "$(declare -f shape)"'
    [[ $2 == unlimited ]] || rate=$2 shape data0
    ! grep -qw cubic /proc/sys/net/ipv4/tcp_available_congestion_control ||
      ip route change "$1.0/24" dev data0 proto kernel scope link src "$3" congctl cubic' - "$data" "$rate" "$data.$(($1 + 1))"
}

# Hosts share no cores, where this machine has one for each: ranks know only of sharing within their own.
deal_cores() {
  local range core cores=() host from
  for range in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g'); do
    for ((core = ${range%-*}; core <= ${range#*-}; ++core)); do cores+=("$core"); done
  done
  ((${#cores[@]} >= hosts)) || return 0
  for ((host = 1; host <= hosts; ++host)); do
    from=$(((host - 1) * ${#cores[@]} / hosts))
    printf '%s\n' "${cores[@]:from:host * ${#cores[@]} / hosts - from}" | paste -sd, >"$scratch/ronda$host.cores"
  done
}

connect() {
  local host pids=() i
  ip link add management type bridge
  ip addr add "$management.1/24" dev management
  ip link set management up
  for ((host = 1; host <= hosts; ++host)); do
    cable $host $management management0 management
    pids+=("$(cat "$scratch/ronda$host")")
  done

  if [[ $delay == none ]]; then
    ip link add data type bridge
    ip link set data up
    for ((host = 1; host <= hosts; ++host)); do
      cable $host $data data0 data
      [[ $rate == unlimited ]] || shape data$host
      prepare_data $host
    done
    return
  fi
  [[ -e /dev/net/tun ]] || cannot '--delay needs /dev/net/tun'
  "$switch" "$rate" "$delay" "${pids[@]}" >"$scratch/switch.out" 2>"$scratch/switch.log" </dev/null &
  for ((i = 0; i < 500; ++i)); do
    [[ ! -s $scratch/switch.out && ! -s $scratch/switch.log ]] || break
    sleep 0.02
  done
  [[ -s $scratch/switch.out ]] || cannot "no switch: $(tail -1 "$scratch/switch.log")"
  for ((host = 1; host <= hosts; ++host)); do
    plug_in $host $data data0
    prepare_data $host
  done
}

# What Open MPI needs to take this for a cluster. Its own options go before these.
settings() {
  # Open MPI 4 and 5 have other names for what takes the place of ssh; every host is reached from the head.
  export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=$scratch/bin/agent OMPI_MCA_plm_rsh_no_tree_spawn=1 OMPI_MCA_ras=^slurm
  export PRTE_MCA_plm=ssh PRTE_MCA_plm_ssh_agent=$scratch/bin/agent PRTE_MCA_plm_ssh_no_tree_spawn=1 PRTE_MCA_ras=^slurm
  export OMPI_MCA_oob_tcp_if_include=$management.0/24 OMPI_MCA_btl_tcp_if_include=$data.0/24
  export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self,vader # never by a network that the machine has and the hosts have not
  export OMPI_MCA_orte_tmpdir_base=$scratch TMPDIR=$scratch
  export OMPI_MCA_mpi_yield_when_idle=1 # more ranks than cores
  # A host that is gone is missed after about ten seconds, not after eight minutes.
  export OMPI_MCA_oob_tcp_keepalive_time=5 OMPI_MCA_oob_tcp_keepalive_intvl=2 OMPI_MCA_oob_tcp_keepalive_probes=3
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export RONDA_CACHE_DIR=$scratch/cache # another bed has hosts of these names and other cables
}

inside() { # inside SCRATCH RATE DELAY SWITCH HOSTS RANKS COMMAND…
  scratch=$1 rate=$2 delay=$3 switch=$4 hosts=$5 ranks=$6
  shift 6
  local host list=
  {
    echo '127.0.0.1 localhost'
    for ((host = 0; host <= hosts; ++host)); do echo "$management.$((host + 1)) ronda$host"; done
  } >"$scratch/hosts"
  mount --bind "$scratch/hosts" /etc/hosts
  hostname ronda0
  ip link set lo up
  for ((host = 1; host <= hosts; ++host)); do
    start_host ronda$host
    list+=${list:+,}ronda$host:$ranks
  done
  deal_cores
  connect

  mkdir "$scratch/bin"
  ln -s "$beds/netns_bed.sh" "$scratch/bin/bed"
  # mpirun calls it as it would call ssh: agent HOST COMMAND…
  printf '#!/bin/sh\n"%s" reach "$1" || exit 255\nhost=$1\nshift\nexec "%s" on "$host" /bin/sh -c "$*"\n' \
    "$scratch/bin/bed" "$scratch/bin/bed" >"$scratch/bin/agent"
  printf '#!/bin/sh\nexec "%s" --host %s --bind-to none --oversubscribe "$@"\n' "$(command -v mpirun)" "$list" \
    >"$scratch/bin/mpirun"
  chmod +x "$scratch"/bin/*
  export RONDA_BED=$scratch PATH=$scratch/bin:$PATH
  settings
  "$@"
}

if [[ ${1:-} == inside ]]; then
  shift
  inside "$@"
  exit
fi
rate=unlimited delay=none switch=${RONDA_DELAYED_SWITCH:-$beds/../../build/release/test/beds/delayed_switch}
while [[ ${1:-} == -* ]]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --rate) rate=${2:?} ;;
    --delay) delay=${2:?} ;;
    --switch) switch=${2:?} ;;
    *) fail "unknown option $1; see --help" ;;
  esac
  shift 2
done
(($# >= 3)) || fail 'needs HOSTS, RANKS and a command; see --help'
[[ $1 =~ ^[0-9]+$ && $2 =~ ^[0-9]+$ ]] && (($1 >= 1 && $1 <= 200 && $2 >= 1)) || fail "cannot be: $1 hosts of $2 ranks"
[[ $delay == none || -x $switch ]] || fail "$switch is missing; build it (target delayed_switch), or name it with --switch"
build_it "$rate" "$delay" "$switch" "$@"
