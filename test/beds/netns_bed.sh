#!/usr/bin/env bash
# bed WORD HOST …: what happens to a host of netns.sh. In reach of the commands that netns.sh runs.
set -euo pipefail

usage() {
  cat <<END
Usage: bed WORD HOST …
bed on HOST COMMAND…        runs COMMAND there
bed cut HOST [NETWORK]      pulls the cable of a network: data (default), management or all; nobody is told
bed heal HOST [NETWORK]     puts it back; also ends what lose does
bed lose HOST PERCENT       loses so many of the packets that it sends over the data network, at random
bed reach HOST              as ssh would from the head: fails where its management cable is cut, and waits where it is frozen
bed freeze HOST             stops all its processes, as kill -STOP does
bed thaw HOST               lets them go on
bed crash HOST              ends it, with all that runs there
END
}

fail() {
  echo "bed: $*" >&2
  exit 2
}

cores=() # that are this host's
in_net() { nsenter --target "$first" --net -- "$@"; }
in_host() { "${cores[@]}" nsenter --target "$first" --net --uts --mount --ipc --pid --wd="$PWD" -- "$@"; }

each_device() { # each_device NETWORK: its devices
  case $1 in
    data | management) echo "$1"0 ;;
    all) echo data0 management0 ;;
    *) fail "no network '$1'; there are data, management, all" ;;
  esac
}

untouched() { in_net tc qdisc del dev "$1" clsact 2>/dev/null || :; } # untouched DEVICE: loses nothing

# A filter is a program for each packet: 6 is "return", of 2, to drop it.
cut() {
  local device direction
  for device in $(each_device "$1"); do
    untouched "$device"
    in_net tc qdisc add dev "$device" clsact
    for direction in egress ingress; do
      in_net tc filter add dev "$device" $direction bpf da bytecode '1,6 0 0 2'
    done
  done
}

heal() {
  local device
  for device in $(each_device "$1"); do untouched "$device"; done
}

# "Take a random number; go on if it is greater than this one, else skip one; drop; pass." The kernel hands over up to 64 KiB as one
# packet unless told not to.
lose() {
  local threshold
  [[ $1 =~ ^[0-9.]+$ ]] || fail "no percentage: '$1'"
  threshold=$(awk -v percent="$1" 'BEGIN { printf "%.0f", 4294967295 * (1 - percent / 100) }')
  untouched data0
  in_net ip link set data0 gso_max_size 1500 gso_max_segs 1
  in_net tc qdisc add dev data0 clsact
  in_net tc filter add dev data0 egress bpf da bytecode "4,32 0 0 4294963256,37 0 1 $threshold,6 0 0 2,6 0 0 4294967295"
}

# Where nobody listens, a host that is there refuses. A frozen one's kernel does so too, but none of its processes does anything.
reach() {
  [[ $(timeout 1 "$BASH" -c ": </dev/tcp/$host/9" 2>&1) == *refused* ]] || return 255
  while [[ -e $RONDA_BED/$host.frozen ]]; do sleep 0.1; done
}

case ${1:-} in
  --help | -h) usage; exit 0 ;;
esac
(($# >= 2)) || fail 'needs a word and a host; see --help'
word=$1 host=$2
shift 2
[[ -n ${RONDA_BED:-} && -s $RONDA_BED/$host ]] || fail "no host '$host' here"
first=$(cat "$RONDA_BED/$host")
[[ ! -s $RONDA_BED/$host.cores ]] || cores=(taskset -c "$(cat "$RONDA_BED/$host.cores")")
case $word in
  on) in_host "$@" ;;
  cut) cut "${1:-data}" ;;
  heal) heal "${1:-data}" ;;
  lose) lose "${1:?how much?}" ;;
  reach) reach ;;
  freeze) touch "$RONDA_BED/$host.frozen" && in_host "$BASH" -c 'kill -STOP -1' ;;
  thaw) rm -f "$RONDA_BED/$host.frozen" && in_host "$BASH" -c 'kill -CONT -1' ;;
  crash) kill -KILL "$first" ;;
  *) fail "unknown word '$word'; see --help" ;;
esac
