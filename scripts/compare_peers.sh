#!/usr/bin/env bash
# Compares our training speed with PyTorch's, TensorFlow's, JAX's and Horovod's on this machine: installs them into
# environments of their own and runs all in turns.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/comparison.sh"
peers=torch,tensorflow,jax,horovod
ours=yes
pass=()

usage() {
  cat <<END
Usage: compare_peers.sh [OPTION]…
Trains the same models with Ronda and with its peers, in turns, one thread a rank, and prints samples a second and ratios:
those of MNIST, and on made-up samples in memory two residual networks and a transformer (gpt; its samples are bytes).
Takes about five minutes a workload of MNIST and half an hour of the others; the first time the peers are installed.

  --only NAMES       workloads, of mlp,cnn,mlp4096,resnet18,resnet50,gpt (all)
  --peers NAMES      peers, of torch,tensorflow,jax,horovod (all)
  --variants NAMES   ways of running a peer that are tried, e.g. graph,compile; a peer without any of them tries all
  --skip-ours        the peers alone
  --skip-one-rank    without ours on one rank
  --ranks N          processes (2)
  --batch-size N     samples a rank and step (64; resnet50 8, gpt 16)
  --rounds N         runs of each, in turns; the best counts (3)
  --trials N         before them, of each variant (2)
  --seconds S        training time of a run, about (8)
  --steps N          steps of a run, instead
  --build DIR        our binaries (build/release)
  --data DIR         the four MNIST files (share/mnist)
  --venv DIR         where the peers are installed (${venv})
  --json FILE        write the results there too
Pip's own settings (PIP_INDEX_URL and the like) are respected. Exit status: 0 done, 1 a run failed, 2 wrong usage or
something is missing.
END
}

while [[ $# -gt 0 ]]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
    --skip-ours) ours=no; pass+=("$1"); shift; continue ;;
    --skip-one-rank) pass+=("$1"); shift; continue ;;
    --*) [[ $# -ge 2 ]] || fail "$1 needs a value, or is unknown; see --help" ;;
  esac
  case $1 in
    --venv) venv=$2 ;;
    --build) build=$2 ;;
    --peers) peers=$2 ;;
    --only | --variants | --ranks | --batch-size | --rounds | --trials | --seconds | --steps | --data | --json)
      pass+=("$1" "$2") ;;
    *) fail "unknown option $1; see --help" ;;
  esac
  shift 2
done

command -v mpirun >/dev/null || fail "mpirun is missing; install Open MPI (Debian: openmpi-bin)"
if [[ $ours == yes ]]; then
  for application in mnist_mlp mnist_cnn cifar10_resnet imagenet_resnet50 char_gpt; do
    [[ -x $build/apps/$application ]] ||
      fail "$build/apps/$application is missing; build it (cmake --preset release && cmake --build --preset release)," \
        "name another build with --build, or run the peers alone with --skip-ours"
  done
fi

# Environments, one a peer, since they do not agree about versions. The file `ready` marks a finished one.

new_environment() { rm -rf "$1" && python3 -m venv "$1"; }

install_torch() {
  new_environment "$1" &&
    "$1/bin/pip" install torch numpy safetensors &&
    "$1/bin/python" -c 'import torch, safetensors.torch'
}

install_tensorflow() {
  new_environment "$1" &&
    "$1/bin/pip" install tensorflow-cpu &&
    "$1/bin/python" -c 'import tensorflow'
}

install_jax() {
  new_environment "$1" &&
    "$1/bin/pip" install 'jax[cpu]' &&
    "$1/bin/python" -c 'import jax'
}

# From source against the system's MPI; its last release knows PyTorch up to 2.1, which needs C++17 where it says 14.
install_horovod() {
  local source=$1/source
  new_environment "$1" &&
    "$1/bin/pip" install torch==2.1.2 'numpy<2' 'setuptools<70' wheel cloudpickle psutil pyyaml packaging &&
    "$1/bin/pip" download --no-deps --no-binary :all: --no-build-isolation --dest "$source" horovod==0.28.1 &&
    tar -xzf "$source/horovod-0.28.1.tar.gz" -C "$source" &&
    sed -i 's/CMAKE_CXX_STANDARD 14/CMAKE_CXX_STANDARD 17/' "$source"/horovod-0.28.1/{,horovod/torch/}CMakeLists.txt &&
    PATH=$1/bin:$PATH HOROVOD_WITH_MPI=1 HOROVOD_WITHOUT_GLOO=1 HOROVOD_WITH_PYTORCH=1 HOROVOD_WITHOUT_TENSORFLOW=1 \
      HOROVOD_WITHOUT_MXNET=1 HOROVOD_CPU_OPERATIONS=MPI MAKEFLAGS=-j$(nproc) \
      nice "$1/bin/pip" install --no-build-isolation --no-deps "$source/horovod-0.28.1" &&
    rm -r "$source" &&
    "$1/bin/python" -c 'import horovod.torch'
}

describe() {
  case $1 in
    torch) echo "torch, numpy, safetensors (about 6 GB: Python's index has PyTorch with CUDA)" ;;
    tensorflow) echo "tensorflow-cpu (about 2 GB)" ;;
    jax) echo "jax[cpu] (about 0.5 GB)" ;;
    horovod) echo "torch 2.1.2 and Horovod 0.28.1, built from source against the system's MPI (about 6 GB, ten minutes)" ;;
    *) fail "unknown peer $1; there are torch, tensorflow, jax, horovod" ;;
  esac
}

mkdir -p "$venv"
venv=$(cd "$venv" && pwd)
present=()
for peer in ${peers//,/ }; do
  what=$(describe "$peer")
  if [[ ! -e $venv/$peer/ready ]]; then
    echo "Installing into $venv/$peer with pip: $what"
    if "install_$peer" "$venv/$peer" >"$venv/install_$peer.log" 2>&1; then
      touch "$venv/$peer/ready"
    else
      echo "$peer cannot be installed here and is left out (see $venv/install_$peer.log)"
      continue
    fi
  fi
  present+=("$peer")
done

[[ $ours == yes || ${#present[@]} -gt 0 ]] || fail "there is no peer to run"
chosen=$(IFS=,; echo "${present[*]}")
exec python3 "$here/peers/compare.py" --venv "$venv" --build "$build" --peers "$chosen" "${pass[@]}"
