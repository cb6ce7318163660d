#!/usr/bin/env bash
# Our allreduce on hundreds of hosts that a simulator (SimGrid) makes up, in simulated time. --help says how.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$here/../../../build/simgrid
hosts=8,64 bytes=100000000 rate=10Gbps latency=1us algorithms=ring mode=time message=0 costs=

usage() {
  cat <<END
Usage: simulate.sh [OPTION]…
Builds the collectives for SimGrid's MPI and runs allreduces on simulated hosts, one rank on each, in two levels of switches
with 16 hosts to one of the lower and as many links up from it. Prints simulated times, how many times 2(n−1)/n · bytes / rate
that is, and how many times the best of the lines of this size so far: what auto chooses comes last.

  --hosts NUMBERS        of hosts; 128 take seconds, 512 minutes ($hosts)
  --bytes NUMBERS        to sum up ($bytes)
  --rate RATE            of each link ($rate)
  --latency TIME         of each link; messages pass two or four ($latency)
  --algorithms NAMES     as --allreduce has them ($algorithms)
  --message-bytes N      of the ring's messages; 0: as it likes, 60 KiB at most. Longer ones are fewer to simulate ($message)
  --costs FILE           what messages cost, for auto: read from there, or measured and written there (measured)
  --check                looks at all results; takes hosts times bytes of memory
  --build DIR            what is built goes here (build/simgrid)
Exit status: 0 done, 1 failed, 2 wrong usage, 77 SimGrid is not there (Debian: libsimgrid-dev).
END
}

fail() {
  echo "simulate.sh: $*" >&2
  exit 2
}

while (($#)); do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --check) mode=check; shift; continue ;;
    --*) (($# >= 2)) || fail "$1 needs a value, or is unknown; see --help" ;;
  esac
  case $1 in
    --hosts) hosts=$2 ;;
    --bytes) bytes=$2 ;;
    --rate) rate=$2 ;;
    --latency) latency=$2 ;;
    --algorithms) algorithms=$2 ;;
    --message-bytes) message=$2 ;;
    --costs) costs=$2 ;;
    --build) build=$2 ;;
    *) fail "unknown option $1; see --help" ;;
  esac
  shift 2
done
case $rate in
  *Gbps) bits=${rate%Gbps}e9 ;;
  *Mbps) bits=${rate%Mbps}e6 ;;
  *) fail "--rate $rate: expected a number with Gbps or Mbps" ;;
esac
for tool in smpicxx smpirun cmake ninja; do
  command -v $tool >/dev/null || { echo "simulate.sh: skipped: needs $tool" >&2; exit 77; }
done

mkdir -p "$build"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{ [[ -e $build/build.ninja ]] || cmake -S "$here" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER=smpicxx -DCMAKE_UNITY_BUILD=ON \
  -DCMAKE_UNITY_BUILD_BATCH_SIZE=30; } \
  >"$build/log" 2>&1 && cmake --build "$build" >>"$build/log" 2>&1 || { tail -30 "$build/log" >&2; exit 1; }

platform() { # platform HOSTS: a file for the simulator; the hosts in their order, or ring neighbours would be far apart
  local all=$1 leaves topology=
  if (($1 > 16)); then
    leaves=$((($1 + 15) / 16)) all=$(((($1 + 15) / 16) * 16))
    topology="topology=\"FAT_TREE\" topo_parameters=\"2;16,$leaves;1,16;1,1\""
  fi
  cat >"$work/platform.xml" <<END
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="n" suffix="" radical="0-$((all - 1))" speed="10Gf" bw="$rate" lat="$latency"
           sharing_policy="SPLITDUPLEX" $topology/>
</platform>
END
  seq -f 'n%.0f' 0 $(($1 - 1)) >"$work/hosts"
}

# Links carry their rate and take their latency; the simulator's own factors were fitted to TCP on Gigabit Ethernet. Computing
# takes no time. Messages are never copied on the way, whatever their length: copies cost the simulator ten times the rest.
plain=(--cfg=smpi/coll-selector:ompi --cfg=smpi/bw-factor:0:1 --cfg=smpi/lat-factor:0:1 --cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:1e15
       --cfg=smpi/send-is-detached-thresh:0 --cfg=smpi/simulate-computation:no --cfg=smpi/host-speed:10Gf --cfg=smpi/shared-malloc-blocksize:33554432)
echo '| hosts | bytes | algorithm | time | times the least | times the best |'
echo '|---|---|---|---|---|---|'
for number in ${hosts//,/ }; do
  platform "$number"
  smpirun -np "$number" -platform "$work/platform.xml" -hostfile "$work/hosts" --log=root.thres:error "${plain[@]}" \
    --cfg=smpi/tmpdir:"$work" "$build/simulated_allreduce" $mode "$bits" "${costs:-$work/costs.$number}" "$message" "$bytes" ${algorithms//,/ }
done
