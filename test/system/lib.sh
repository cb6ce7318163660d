# shellcheck shell=bash
# Sourced by the system tests: runs an application, alone or by mpirun, and says what is not as it should be. A test goes on
# after a failed check, so that one run shows them all; its exit status tells whether there was one.
set -uo pipefail

apps=$(cd "${1:?usage: $0 APPS}" && pwd) # the folder of the applications
beds=$(cd "$(dirname "${BASH_SOURCE[0]}")/../beds" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/ronda-test.XXXXXX")
trap finish EXIT
mnist=
for folder in "$apps/../../../share/mnist" "$apps/../share/ronda/mnist"; do # in the build tree, after installation
  [[ ! -d $folder ]] || mnist=$(cd "$folder" && pwd)
done
export OMPI_MCA_btl=^tcp,ofi # one host needs no network, Open MPI 5 has words about some, and ofi takes a second to end
export OMPI_MCA_odls_base_sigkill_timeout=0 # Open MPI 4.1 otherwise waits a second or two before it ends what has ended
failed=$work/failed # a line a failed check
what= # is being tried

finish() {
  local result=$? failures
  wait
  failures=$(cat "$failed" 2>/dev/null | wc -l)
  rm -rf "$work"
  ((failures == 0)) || { echo "$failures checks failed"; exit 1; }
  exit "$result"
}

# aside COMMAND…: beside others, a few at a time, with a $work of its own: for checks that leave nothing to the next.
asides=0
aside() {
  asides=$((asides + 1))
  (($(jobs -rp | wc -l) < 4)) || wait -n
  (
    trap - EXIT
    work=$work/aside.$asides
    mkdir "$work"
    "$@"
  ) &
}

skip() { # skip REASON: this machine cannot run the test
  echo "skipped: $*"
  exit 77
}

fail() {
  echo "$what" >>"$failed"
  printf 'FAILED: %s: %s\n' "$what" "$*"
  # What a test program says of a failed check, and the end.
  { grep -h -m 3 -A 6 'FAILED' "$work/out"; tail -qn 20 "$work/out" "$work/err"; } 2>/dev/null | sed 's/^/    | /'
}

expect() { # expect TEXT COMMAND…: the command succeeds
  local text=$1
  shift
  "$@" || fail "expected $text"
}

# few_images: from here on MNIST applications train on the first 6000 images and test on the first 1000, where no --data says otherwise:
# a short training spends most of its time on reading all.
few=
few_images() {
  local part count hex
  few=$work/few
  mkdir "$few"
  for part in 'train 6000' 't10k 1000'; do
    read -r part count <<<"$part"
    hex=$(printf '%08x' "$count" | sed 's/../\\x&/g')
    { printf "\\0\\0\\x08\\x03$hex\\0\\0\\0\\x1c\\0\\0\\0\\x1c"; gzip -dc "$mnist/$part-images-idx3-ubyte.gz" | tail -c +17 | head -c $((count * 784)); } >"$few/$part-images-idx3-ubyte"
    { printf "\\0\\0\\x08\\x01$hex"; gzip -dc "$mnist/$part-labels-idx1-ubyte.gz" | tail -c +9 | head -c "$count"; } >"$few/$part-labels-idx1-ubyte"
    (($(stat -c %s "$few/$part-images-idx3-ubyte") == 16 + count * 784 && $(stat -c %s "$few/$part-labels-idx1-ubyte") == 8 + count)) ||
      fail "$mnist has no $count images of $part"
  done 2>/dev/null
}

# mpi RANKS COMMAND…: under mpirun where there are several ranks. Nobody hangs: ten seconds are promised, of which a busy machine makes
# more.
limit=30
mpi() {
  local ranks=$1
  shift
  local launcher=(mpirun -n "$ranks")
  ((ranks > 1)) || launcher=()
  what="$ranks ranks: ${*/#$apps\//}"
  [[ -z $few || $1 != "$apps"/mnist_* || " $* " == *' --data '* ]] || set -- "$@" --data "$few"
  run "${launcher[@]}" "$@"
}

run() { # run COMMAND…: sets `status`; what it says goes to $work/out and $work/err
  local begin=$SECONDS
  timeout -k 5 "$limit" "$@" >"$work/out" 2>"$work/err" </dev/null
  status=$? # 137 also where ranks have ended their launcher
  ((status != 124 && (status != 137 || SECONDS - begin < limit))) || fail "not over in $limit s"
}

expect_status() { ((status == $1)) || fail "exit status $status, expected $1"; }

# Open MPI has lines of its own; ours is one, and starts a line.
expect_message() { # expect_message REGEX: one error message in all, which matches
  local count
  count=$(grep -ac '^ronda: error: ' "$work/err")
  ((count == 1)) || fail "$count messages, expected one"
  grep -aE '^ronda: error: ' "$work/err" | grep -aEq -- "$1" || fail "expected a message about '$1'"
}

# refused REGEX APPLICATION OPTION…: status 2 and one message, alone and on two ranks. Beside what comes next.
refused() { aside refused_here "$@"; }
refused_here() {
  local regex=$1 application=$2 ranks
  shift 2
  for ranks in 1 2; do
    mpi "$ranks" "$apps/$application" "$@"
    expect_status 2
    expect_message "$regex"
  done
}

# refused_alone REGEX TOOL ARGUMENT…: the same of a tool, which is one process.
refused_alone() {
  local regex=$1
  shift
  what="$*"
  run "$apps/$1" "${@:2}"
  expect_status 2
  expect_message "$regex"
}

# unequal REGEX 'COMMAND OF RANK 0' 'COMMAND OF RANK 1': status 2 and one message. Beside what comes next.
# mpirun's own `A : B` would do, but Open MPI 5.0.7's crashes on it.
unequal() { aside unequal_here "$@"; }
unequal_here() {
  what="unequal ranks: ${2/$work/} : ${3/$work/}"
  run mpirun -n 2 bash -c 'shift "$OMPI_COMM_WORLD_RANK"; exec $1' ranks "$apps/$2" "$apps/$3"
  expect_status 2
  expect_message "$1"
}

# trained RANKS APPLICATION OPTION…: status 0, nothing said; leaves $work/summary.json
trained() {
  local ranks=$1 application=$2
  shift 2
  rm -f "$work/summary.json"
  mpi "$ranks" "$apps/$application" --quiet --summary-json "$work/summary.json" "$@"
  expect_status 0
}

# summary KEY: its value in $work/summary.json; every key has a line of its own there.
summary() { sed -n "s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$work/summary.json" | head -1; }

expect_summary() { # expect_summary KEY VALUE
  [[ $(summary "$1") == "$2" ]] || fail "$1 is '$(summary "$1")' in the summary, expected '$2'"
}

at_least() { awk -v x="$1" -v y="$2" 'BEGIN { exit !(x != "" && x >= y) }'; } # at_least X Y: numbers
