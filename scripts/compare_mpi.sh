#!/usr/bin/env bash
# Compares our allreduce on one machine with that of the MPI libraries that Python's package index has: installs each into
# an environment of its own and runs all in turns.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/comparison.sh"
venv=$(dirname "$venv")/mpis
mpis=openmpi4,openmpi5,mpich,intel
pass=()

usage() {
  cat <<END
Usage: compare_mpi.sh [OPTION]…
Sums float32 numbers over the ranks of this machine by bench_allreduce and by the MPI_Allreduce of other MPI libraries, in
turns, and prints times (medians) and how many times as fast we are as the fastest of them (the median over pairs of runs
of the same round). The others have private memory in large pages. A round takes about half a minute; the first time
the libraries are installed (500 MB).

  --mpis NAMES       of openmpi4,openmpi5,mpich,intel (all)
  --ranks N          processes (2)
  --bytes SIZES      to sum up (8,256,4096,65536,262144,1048576,4194304,16777216,67108864,268435456)
  --rounds N         runs of each, in turns (5)
  --build DIR        our binaries (build/release)
  --venv DIR         where the libraries are installed (${venv})
  --json FILE        write the results there too
  --warm             sum one buffer repeatedly; else each rank rewrites its buffer before each call
Pip's own settings (PIP_INDEX_URL and the like) are respected. Exit status: 0 done, 1 a run failed, 2 wrong usage or
something is missing.
END
}

while [[ $# -gt 0 ]]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --warm) pass+=(--warm); shift; continue ;;
    --*) [[ $# -ge 2 ]] || fail "$1 needs a value, or is unknown; see --help" ;;
  esac
  case $1 in
    --venv) venv=$2 ;;
    --build) build=$2 ;;
    --mpis) mpis=$2 ;;
    --ranks | --bytes | --rounds | --json) pass+=("$1" "$2") ;;
    *) fail "unknown option $1; see --help" ;;
  esac
  shift 2
done

command -v mpirun >/dev/null || fail "mpirun is missing; install Open MPI (Debian: openmpi-bin)"
command -v cc >/dev/null || fail "cc is missing; install a C compiler"
require_program bench_allreduce

packages() {
  case $1 in
    openmpi4) echo 'openmpi<5' ;;
    openmpi5) echo 'openmpi>=5,<6' ;;
    mpich) echo mpich ;;
    intel) echo impi-rt impi-devel ;;
    *) fail "unknown MPI $1; there are openmpi4, openmpi5, mpich, intel" ;;
  esac
}

install() { # install NAME: into an environment of its own; the file `ready` marks a finished one
  local name=$1 wanted
  read -ra wanted <<<"$(packages "$name")"
  rm -rf "${venv:?}/$name"
  python3 -m venv "$venv/$name" &&
    "$venv/$name/bin/pip" install "${wanted[@]}" &&
    compile "$name" && touch "$venv/$name/ready"
}

compile() { # compile NAME: what is measured, if that has changed
  local name=$1
  [[ $here/mpis/allreduce.c -nt $venv/$name/allreduce ]] || return 0
  cc -O2 -o "$venv/$name/allreduce" "$here/mpis/allreduce.c" -I"$venv/$name/include" -L"$venv/$name/lib" \
    -Wl,-rpath,"$venv/$name/lib" -Wl,--disable-new-dtags -Wl,--allow-shlib-undefined -lmpi
}

mkdir -p "$venv"
venv=$(cd "$venv" && pwd)
present=()
for mpi in ${mpis//,/ }; do
  what=$(packages "$mpi")
  step=compile
  [[ -e $venv/$mpi/ready ]] || { echo "Installing into $venv/$mpi with pip: $what"; step=install; }
  if $step "$mpi" >"$venv/install_$mpi.log" 2>&1; then
    present+=("$mpi")
  else
    echo "$mpi cannot be installed here and is left out (see $venv/install_$mpi.log)"
  fi
done
((${#present[@]} > 0)) || fail "there is no other MPI to run"
chosen=$(IFS=,; echo "${present[*]}")
exec python3 "$here/mpis/compare.py" --venv "$venv" --build "$build" --mpis "$chosen" "${pass[@]}"
