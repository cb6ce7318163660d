#!/usr/bin/env bash
# How fast an MLP is trained with a parameter server, by Ronda and by TensorFlow's ParameterServerStrategy, in turns on this machine.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/comparison.sh"
workers=2 servers=1 rounds=3 steps=4000

usage() {
  cat <<END
Usage: compare_parameter_servers.sh [OPTION]…
Trains MNIST's MLP of 128 hidden neurons, momentum, 64 samples a worker and step, and prints samples a second: Ronda's asynchronous and in
steps of all workers, and TensorFlow's, which are asynchronous, scheduled one by one and 50 at once. TensorFlow is installed the first time.

  --workers N       (${workers})
  --servers N       (${servers})
  --steps N         updates of a run (${steps})
  --rounds N        runs of each, in turns; the best counts (${rounds})
  --build DIR       our binaries (build/release)
  --venv DIR        where the peer is installed (${venv})
Exit status: 0 done, 1 a run failed, 2 wrong usage or something is missing.
END
}
read_options "workers servers steps rounds build venv" "$@"
require_program mnist_mlp
require_packages tensorflow tensorflow "2 GB" tensorflow
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
source "$here/setup.sh"
allow_root_and_few_cores $((workers + servers))

ours() { # ours NAME STEPS OPTION…
  local name=$1 count=$2
  shift 2
  mpirun -n $((workers + servers)) "$build/apps/mnist_mlp" --quiet --threads 1 --strategy parameter_server --servers "$servers" \
    --optimizer momentum --schedule constant --learning-rate 0.01 --steps "$count" --epochs "$count" --summary-json "$work/summary.json" "$@"
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["samples_per_second"])' "$work/summary.json" >>"$work/$name"
}
theirs() { # theirs VARIANT
  OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=3 "$python" "$here/peers/tensorflow_parameter_server.py" --variant "$1" --workers "$workers" \
    --servers "$servers" --steps "$steps" 2>>"$work/log" | python3 -c 'import json, sys; print(json.load(sys.stdin)["samples_per_second"])' >>"$work/tensorflow_$1"
}
for ((round = 1; round <= rounds; ++round)); do
  echo "Round $round of $rounds" >&2
  ours ronda_asynchronous "$steps" --asynchronous --global-batch-size 64
  ours ronda_all "$steps" --batch-size 64
  for variant in steps loop; do
    theirs $variant || { tail -n 20 "$work/log" >&2; exit 1; }
  done
done
python3 - "$work" "$workers" "$servers" "$(processor)" "$("$python" -c 'import tensorflow; print(tensorflow.__version__)' 2>/dev/null)" <<'END'
import sys
from pathlib import Path
work, workers, servers, processor, version = sys.argv[1:]
names = ("ronda_asynchronous", "ronda_all", "tensorflow_steps", "tensorflow_loop")
speeds = {name: [float(line) for line in (Path(work) / name).read_text().split()] for name in names}
print(f"samples/s with {workers} workers and {servers} server(s), one thread each,{processor}, tensorflow {version}:")
for name, all in speeds.items():
    print(f"  {name:20}{max(all):10.0f}   of {', '.join(f'{speed:.0f}' for speed in all)}")
best = max(max(all) for name, all in speeds.items() if name.startswith("tensorflow"))
print(f"Ronda asynchronous / the best of TensorFlow's: {max(speeds['ronda_asynchronous']) / best:.2f}")
END
