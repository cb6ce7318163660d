#!/usr/bin/env bash
# Trainings on data larger than the memory that they may use. --help says how to use it.
set -uo pipefail
beds=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
limit_mib=160 hold=0 turns=0 ranks=2

usage() {
  cat <<END_OF_USAGE
Usage: small_memory.sh [OPTION]… BUILD
Makes files of four times a limit, and trains on them with $ranks ranks in a memory cgroup of that limit: launcher, ranks, their shared
memory and the page cache of all files together. BUILD is a build tree with train_files, data_tool and char_gpt, as build/release.

  pictures  PNG files, decoded as they are read      hdf5  an HDF5 file, read a sample at a time
  arrays    .npy files, mapped                       text  a text of any bytes, mapped, in windows of 128 bytes

Each training has to end with status 0, after all samples; the kernel may kill nothing; the limit has to be reached, by the page cache; and memory
that is no file's, sampled while it trains, may not grow.

  --limit MIB     the limit ($limit_mib); the files take five times as much on the disk, for a while
  --only NAMES    some of the four: pictures,text
  --hold SHARE    train_files holds this share of what it reads, so that the test fails: 0.01 grows, 1 is killed
  --turns N       afterwards, N trainings on each with the limit and N without it in turns, and their samples a second

The files lie below TMPDIR (/tmp), which has to be a disk. Needs root, and cgroups of version 1 or 2. Exit status: 0; 1 a check failed;
77 where this machine cannot do it, and why; 2 wrong usage.
END_OF_USAGE
}

wrong() {
  echo "small_memory.sh: $*" >&2
  exit 2
}

only=pictures,arrays,hdf5,text
while [[ ${1:-} == -* ]]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --limit) limit_mib=${2:?} ;;
    --only) only=${2:?} ;;
    --hold) hold=${2:?} ;;
    --turns) turns=${2:?} ;;
    *) wrong "unknown option $1; see --help" ;;
  esac
  shift 2
done
(($# == 1)) || wrong 'needs a build tree; see --help'
[[ $limit_mib$turns =~ ^[0-9]+$ ]] || wrong '--limit and --turns are whole numbers'
build=$(cd "$1" && pwd) || wrong "there is no $1"
for program in test/beds/train_files apps/ronda_data apps/char_gpt; do
  [[ -x $build/$program ]] || wrong "$build/$program is missing; build it"
done
# shellcheck source=test/system/lib.sh
source "$beds/../system/lib.sh" "$build/apps"
limit=600 # seconds of a training, or of making files
bytes=$((4 * limit_mib << 20))

# ---- the cgroup -----------------------------------------------------------------------------------------------------------------
group='' version=0
remove_group() {
  local i
  [[ -n $group ]] || return 0
  for ((i = 0; i < 100; ++i)); do # what has ended in it may not be gone yet
    rmdir "$group" 2>/dev/null && break
    sleep 0.05
  done
}
leave() {
  local result=$?
  remove_group
  (exit $result)
  finish
}
trap leave EXIT

make_group() {
  ((EUID == 0)) || skip 'needs root'
  if [[ -w /sys/fs/cgroup/memory/cgroup.procs ]]; then
    version=1 group=/sys/fs/cgroup/memory/ronda-small-memory-$$
  elif grep -qsw memory /sys/fs/cgroup/cgroup.controllers; then
    version=2 group=/sys/fs/cgroup/ronda-small-memory-$$
    grep -qw memory /sys/fs/cgroup/cgroup.subtree_control || echo +memory 2>/dev/null >/sys/fs/cgroup/cgroup.subtree_control ||
      skip 'cgroups of version 2 do not pass memory on to groups here'
  else
    skip 'no memory cgroups here'
  fi
  mkdir "$group" 2>/dev/null || skip "cannot make $group"
  if ((version == 1)); then
    echo "${limit_mib}M" >"$group/memory.limit_in_bytes" || skip 'cannot limit memory'
    [[ ! -e $group/memory.memsw.limit_in_bytes ]] || echo "${limit_mib}M" >"$group/memory.memsw.limit_in_bytes"
  else
    echo "${limit_mib}M" >"$group/memory.max" || skip 'cannot limit memory'
    [[ ! -e $group/memory.swap.max ]] || echo 0 >"$group/memory.swap.max"
  fi
}

value() { awk -v key="$1" '$1 == key { print $2 }' "$2"; } # value KEY FILE: of lines of a key and a number

# Whether memory was ever full, since `forget_peak`: up to what the kernel charges at a time.
forget_peak() {
  if ((version == 1)); then echo 0 >"$group/memory.max_usage_in_bytes"; else met=$(value max "$group/memory.events"); fi
}
was_full() {
  if ((version == 1)); then
    (($(cat "$group/memory.max_usage_in_bytes") >= (limit_mib - 1) << 20))
  else
    (($(value max "$group/memory.events") > met))
  fi
}
# How many processes the kernel has killed.
killed_count() { value oom_kill "$group/$( ((version == 1)) && echo memory.oom_control || echo memory.events)"; }

# ---- files ----------------------------------------------------------------------------------------------------------------------
# Of random bytes: nothing gets smaller by compression. Pictures are of 160 x 160 pixels, 75 KiB each.
cat >"$work/make.py" <<'PYTHON'
import os, struct, sys, zlib
from pathlib import Path
kind, to, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
SIDE = 160
def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + os.urandom(3 * SIDE) for _ in range(SIDE))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b""))
if kind == "text":
    with open(to, "wb") as file:
        for _ in range(0, size, 1 << 20):
            file.write(os.urandom(1 << 20))
else:
    for name in ("a", "b"):
        (to / name).mkdir(parents=True)
    for i in range(-(-size // (3 * SIDE * SIDE))):
        (to / "ab"[i % 2] / f"{i:06}.png").write_bytes(png())
PYTHON

# The page cache belongs to who read a page first: what is trained on must not be there already.
cat >"$work/forget.py" <<'PYTHON'
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        file = os.open(os.path.join(folder, name), os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
PYTHON
forget() { python3 "$work/forget.py" "$files"; }

files=$work/files
make_files() { # make_files FORMAT: below $files, alone there but for the pictures
  what="making $1"
  case $1 in
    text) run "${limited[@]}" python3 "$work/make.py" text "$files/text" $bytes ;;
    *)
      [[ -d $files/pictures ]] || run "${limited[@]}" python3 "$work/make.py" pictures "$files/pictures" $bytes
      [[ $1 != arrays ]] || run "${limited[@]}" "$apps/ronda_data" convert images "$files/pictures" "$files/arrays" --size 160
      [[ $1 != hdf5 ]] || run "${limited[@]}" "$apps/ronda_data" convert images "$files/pictures" "$files/hdf5.h5" --size 160
      ;;
  esac
  expect_status 0
}

# ---- trainings ------------------------------------------------------------------------------------------------------------------
# A text has too many samples for a whole epoch; its windows are taken from all over the file.
text_steps=1000
training() { # training FORMAT: sets `command`, and `samples`, how many it reads
  local model=(--layers 1 --heads 1 --width 8 --context 128 --test-split 0)
  samples=$(((bytes + 3 * 160 * 160 - 1) / (3 * 160 * 160)))
  case $1 in
    pictures) command=("$build/test/beds/train_files" --data "$files/pictures" --size 160 --hold "$hold") ;;
    arrays) command=("$build/test/beds/train_files" --data "$files/arrays" --hold "$hold") ;;
    hdf5) command=("$build/test/beds/train_files" --data "$files/hdf5.h5" --hold "$hold") ;;
    text)
      command=("$apps/char_gpt" --data "$files/text" "${model[@]}" --steps $text_steps)
      samples=$((text_steps * 32))
      ;;
  esac
  command+=(--epochs 1 --global-batch-size 32 --threads 1 --quiet --summary-json "$work/summary.json" --metrics "$work/metrics")
}

# sample_memory FILE: a line every 20 ms: bytes that are no file's, of all processes in the group. From the first lines of the metrics
# on: before, the training starts.
sample_memory() {
  local key bytes stat=rss
  ((version == 1)) || stat=anon
  while :; do
    if [[ -s $work/metrics ]]; then
      while read -r key bytes; do
        [[ $key != "$stat" ]] || echo "$bytes"
      done <"$group/memory.stat" >>"$1"
    fi
    sleep 0.02
  done
}

# What it takes is allocated before the first step; each of the two ranks' allocators may still find a new arena of 1 MiB for a thread,
# and the kernel counts what a processor has not handed over yet, up to 64 pages each.
margin=$((4 << 20))
# How many samples are a third of them, and the most of the first third and of the last.
early_and_late() {
  awk '{ bytes[NR] = $1 }
    END { third = int(NR / 3)
      for (i = 1; i <= third; ++i) {
        if (bytes[i] > early) early = bytes[i]
        if (bytes[i + NR - third] > late) late = bytes[i + NR - third] }
      printf "%d %d %d\n", third, early, late }' "$1"
}

check_training() { # check_training FORMAT
  local killed third early late
  training "$1"
  forget
  rm -f "$work/summary.json" "$work/metrics" "$work/samples"
  killed=$(killed_count)
  forget_peak
  touch "$work/samples"
  sample_memory "$work/samples" &
  local sampler=$!
  what="$1 of $((bytes >> 20)) MiB in $limit_mib MiB"
  run "${limited[@]}" mpirun -n $ranks "${command[@]}"
  kill $sampler
  wait $sampler 2>/dev/null
  expect_status 0
  expect 'no process killed' test "$(killed_count)" -eq "$killed"
  expect 'the limit to be reached, by the page cache' was_full
  [[ -s $work/summary.json ]] || return
  expect_summary samples "$samples"
  read -r third early late < <(early_and_late "$work/samples")
  expect 'ten samples of memory in a third of the training, which a higher --limit makes longer' test "$third" -ge 10
  expect "no more than $early bytes and $margin at the end, found $late" test "$late" -le $((early + margin))
  printf '%s: %d samples, %.1f MiB early, %.1f MiB late, %.0f samples/s\n' "$what" "$samples" \
    "$(mib "$early")" "$(mib "$late")" "$(summary samples_per_second)"
}
mib() { awk -v bytes="$1" 'BEGIN { print bytes / 1048576 }'; }

measure() { # measure FORMAT: with and without the limit in turns; without it, the files fit into memory, and are there
  local turn
  training "$1"
  for ((turn = 0; turn < turns; ++turn)); do
    forget
    run "${limited[@]}" mpirun -n $ranks "${command[@]}"
    printf '%s: %.0f samples/s with the limit, ' "$1" "$(summary samples_per_second)"
    find "$files" -type f -exec cat {} + >/dev/null
    run mpirun -n $ranks "${command[@]}"
    printf '%.0f without\n' "$(summary samples_per_second)"
  done
}

[[ $(stat -f -c %T "$work") != tmpfs ]] || skip "$work is in memory; set TMPDIR to a folder on a disk"
make_group
# shellcheck disable=SC2016 # for the inner shell
limited=(bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group") # before a command: in the group
mkdir "$files"
for format in ${only//,/ }; do
  [[ ,pictures,arrays,hdf5,text, == *,$format,* ]] || wrong "there is no format $format"
  make_files "$format"
  check_training "$format"
  ((turns == 0)) || measure "$format"
  [[ $format == pictures ]] || rm -rf "${files:?}/$format"*
done
