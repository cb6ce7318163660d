#!/usr/bin/env bash
# One command for a machine with a GPU, CUDA, CMake and Ninja, without MPI and without a network: builds, tests, and measures
# beside PyTorch, in less than nine minutes. Brings what it needs in build/gpu-bundle or build/gpu-bundle.tar.gz, which
# scripts/gpu_bundle.sh makes elsewhere; without these it takes what the machine has.
# cuDNN and NCCL may be those of PyTorch's wheels. Builds in build/gpu-check/build, wherever the results go.
#   scripts/gpu_check.sh [--budget SECONDS] [--out DIR] [--python PYTHON] [--preset NAME] [--only TARGETS] [--build DIR] [--docs]
#     --budget SECONDS   for everything (520); each stage has a part of it, and what is left over goes to the next
#     --out DIR          results.json, results.md and a log a stage (build/gpu-check)
#     --python PYTHON    that has PyTorch (python3)
#     --preset NAME      cuda, or where there is no nvcc release
#     --only TARGETS     build no more than these, separated by commas
#     --build DIR        take what is built there instead
#     --docs             write docs/gpu-results.md too
# A stage that fails or runs out of time leaves the others' results as they are. Without a GPU it goes as far as it can,
# and says what it left out. Exit status: 0 every stage passed or had to be skipped, 1 one failed, 2 wrong usage.
set -uo pipefail
started=$SECONDS
cd "$(dirname "${BASH_SOURCE[0]}")/.."
budget=520 out=build/gpu-check python=python3 preset= only= build= docs=

fail() {
  echo "ronda: error: $*" >&2
  exit 2
}
while (($#)); do
  case $1 in
    --help) sed -n '2,15p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    --docs) docs=yes; shift; continue ;;
    --budget | --out | --python | --preset | --only | --build) (($# > 1)) || fail "$1 needs a value" ;;
    *) fail "unknown option $1; see --help" ;;
  esac
  printf -v "${1#--}" %s "$2"
  shift 2
done
[[ $budget =~ ^[0-9]+$ ]] || fail "--budget is a number of seconds, not '$budget'"
[[ -z $build || -d $build/apps ]] || fail "--build $build: there is nothing built"
command -v "$python" >/dev/null || fail "needs $python, for the results"
PATH=$PATH:$(dirname "$(command -v "$python")") # pip puts CMake and Ninja there

rm -rf "$out/logs" "$out/tests"
mkdir -p "$out/logs" "$out/tests"
out=$(cd "$out" && pwd)
given=$build
[[ -z $given ]] && build=$PWD/build/gpu-check/build || build=$(cd "$given" && pwd)
: >"$out/stages.tsv"
rm -f "$out/bundle"
: >"$out/measurements.jsonl"

# ---- what is there ----
if [[ ! -d build/gpu-bundle && -f build/gpu-bundle.tar.gz ]]; then tar -C build -xzf build/gpu-bundle.tar.gz; fi
if [[ -f build/gpu-bundle/env.sh ]]; then
  . build/gpu-bundle/env.sh
  touch "$out/bundle"
  echo "ronda: MPI and libraries of build/gpu-bundle"
else
  echo "ronda: no build/gpu-bundle (scripts/gpu_bundle.sh makes it): MPI and libraries of this machine"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
fi
for program in cmake ctest ninja; do command -v "$program" >/dev/null || fail "needs $program"; done
for folder in /usr/local/cuda/bin /usr/local/cuda-*/bin; do
  command -v nvcc >/dev/null || [[ ! -x $folder/nvcc ]] || export PATH=$folder:$PATH
done
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d '. ')
gpus=$(nvidia-smi --list-gpus 2>/dev/null | grep -c '^GPU')
device=cpu
if ((gpus > 0)) && command -v nvcc >/dev/null; then device=cuda; fi
if [[ -z $preset ]]; then
  preset=release
  if command -v nvcc >/dev/null; then preset=cuda; else echo "ronda: no nvcc: builds for the CPU"; fi
fi
if [[ $device == cpu ]]; then
  [[ -z $docs ]] || fail "--docs needs a GPU, whose results docs/gpu-results.md has"
  echo "ronda: NO GPU HERE, so nothing below says anything of one: GPU tests are skipped, and what is measured is the CPU"
fi
# Another compiler than ours may warn of other things, which is no reason to build nothing.
configure=(--preset "$preset" -B "$build" -DCMAKE_COMPILE_WARNING_AS_ERROR=OFF)

# from_wheels HEADER LIBRARY FOLDER: PyTorch's wheels, FOLDER of them, where CUDA and the system lack HEADER or LIBRARY.
from_wheels() {
  local toolkit place found= multiarch=$(uname -m)-linux-gnu
  toolkit=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  for place in "$toolkit" "$toolkit"/targets/* /usr /usr/local; do
    [[ ! -f $place/include/$1 && ! -f $place/include/$multiarch/$1 ]] || found+=h
    if compgen -G "$place/lib*/$2.so" || compgen -G "$place/lib/$multiarch/$2.so"; then found+=l; fi >/dev/null
  done
  [[ $found != *h* || $found != *l* ]] || return 1
  wheel=$("$python" -c 'import glob, nvidia, sys
for path in nvidia.__path__: print(*glob.glob(path + "/" + sys.argv[1]), sep="\n")' "$3" 2>/dev/null | head -1)
  [[ -n $wheel && -f $wheel/include/$1 ]] || { echo "ronda: neither CUDA nor PyTorch's wheels have $1 and $2"; return 1; }
  echo "ronda: $1 and $2 of $wheel"
}
if [[ $preset == cuda ]]; then
  if from_wheels cudnn_graph.h libcudnn cudnn; then configure+=("-DCUDNN_ROOT=$wheel"); fi
  if from_wheels nccl.h libnccl nccl; then configure+=("-DNCCL_ROOT=$wheel"); fi
  if from_wheels cublasLt.h libcublasLt 'cu1[0-9]'; then
    configure+=("-DCUDA_cublasLt_LIBRARY=$(compgen -G "$wheel/lib/libcublasLt.so*" | head -1)")
    export CPLUS_INCLUDE_PATH=${CPLUS_INCLUDE_PATH:+$CPLUS_INCLUDE_PATH:}$wheel/include # after CUDA's own
  fi
  if from_wheels nvrtc.h libnvrtc 'cu1[0-9]'; then configure+=("-DNVRTC_ROOT=$wheel"); fi
  configure+=("-DRONDA_CUDA_ARCHITECTURES=${capability:-90}-real")
  [[ ! -d build/gpu-bundle ]] || configure+=("-DRONDA_CUDNN_FRONTEND_INCLUDE=$PWD/build/gpu-bundle/include")
fi

# ---- stages ----
left() { echo $((budget - (SECONDS - started))); }

# stage NAME SECONDS COMMAND…: within its time and what is left of all; its output is a log. Status 77: skipped.
stage() {
  local name=$1 limit=$2 began=$SECONDS status=0 word
  shift 2
  ((limit <= $(left) - 10)) || limit=$(($(left) - 10))
  if ((limit < 5)); then
    status=77
    echo "no time left" >"$out/logs/$name.log"
  else
    timeout -k 5 "$limit" "$@" >"$out/logs/$name.log" 2>&1 </dev/null || status=$?
  fi
  case $status in
    0) word=passed ;;
    77) word=skipped ;;
    124 | 137) word="out of time" ;;
    *) word=failed ;;
  esac
  printf '%s\t%s\t%s\n' "$name" "$word" "$((SECONDS - began))" >>"$out/stages.tsv"
  printf 'ronda: %-12s %-12s %4d s' "$name" "$word" "$((SECONDS - began))"
  case $word in
    passed) echo ;;
    skipped) printf '  %s\n' "$(tail -1 "$out/logs/$name.log")" ;;
    *) echo; tail -15 "$out/logs/$name.log" | sed 's/^/    | /' ;;
  esac
}

tests() { # tests NAME SECONDS CTEST-OPTION…: 0 where some ran and none failed, 77 where none ran
  local name=$1 end
  end=$(date -d "+$2 seconds" '+%H:%M:%S') # then ctest ends in good order, with the results so far
  shift 2
  ctest --test-dir "$build" --output-on-failure --output-junit "$out/tests/$name.xml" --stop-time "$end" "$@"
  "$python" scripts/gpu/results.py --ran "$out/tests/$name.xml"
}

make_all() {
  local targets=(${only//,/ })
  if ((${#targets[@]})); then
    cmake --build "$build" --target "${targets[@]}"
  else
    cmake --build "$build" --target apps/all && cmake --build "$build" -- -k 0
  fi
}

nccl() { # figures of NCCL's allreduce
  if ((gpus < 2)); then
    echo "NCCL's speed needs two GPUs, here are $gpus"
    return 77
  fi
  mpirun -n "$gpus" "$build/apps/bench_allreduce" --device cuda --algorithm nccl --max-bytes 1G --json "$out/nccl.json"
}

sanitizer() { # NVIDIA's memory checker, on what allocates, copies, updates and records
  command -v compute-sanitizer >/dev/null || { echo "there is no compute-sanitizer in PATH"; return 77; }
  ((gpus > 0)) || { echo "needs a GPU"; return 77; }
  local device=$build/test/core/test_gpu_device update=$build/test/optim/test_gpu_update
  local strategy=$build/test/strategy/test_gpu_strategy check=(compute-sanitizer --report-api-errors no --error-exitcode 9)
  [[ -x $device && -x $update && -x $strategy ]] || { echo "its test programs are not built"; return 77; }
  "${check[@]}" "$device" && "${check[@]}" "$update" && "${check[@]}" "$strategy" --filenames-as-tags '[#gpu_graph_test]'
}

measure() {
  "$python" scripts/gpu/measure.py --build "$build" --device "$device" --seconds-left "$1" --python "$python" \
    --append "$out/measurements.jsonl"
}

export -f tests make_all nccl sanitizer measure
export out build only gpus device python
as_function() { # timeout runs programs, so a function of this script goes through a shell
  local name=$1
  shift
  printf 'set -uo pipefail; %s' "$name"
  printf ' %q' "$@"
}

if [[ -z $given ]]; then
  stage configure 60 cmake "${configure[@]}"
  stage build 240 bash -c "$(as_function make_all)"
fi
stage doctor 90 "$build/apps/ronda_doctor" --json "$out/doctor.json"
ctest --test-dir "$build" -N -L gpu 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: //p' >"$out/gpu-tests.txt"
# What proves most and takes least comes first; ranks that wait for one another, last.
first='^gpu_(device|update|training|graph|data|mixed)$' layers='^gpu_(engines|layers)$'
stage gpu-step 100 bash -c "$(as_function tests gpu-step 90 -R "$first")"
stage gpu-layers 100 bash -c "$(as_function tests gpu-layers 90 -R "$layers")"
seconds=$(($(left) - 150)) # PyTorch takes long to begin
seconds=$((seconds > 140 ? 140 : seconds < 20 ? 20 : seconds))
stage gpu-ranks $seconds bash -c "$(as_function tests gpu-ranks $((seconds - 10)) -L gpu -E "$first|$layers")"
stage nccl 60 bash -c "$(as_function nccl)"
seconds=$(($(left) - 30))
seconds=$((seconds > 280 ? 280 : seconds))
stage measure $seconds bash -c "$(as_function measure $((seconds - 20)))"
stage sanitizer 60 bash -c "$(as_function sanitizer)"
stage cpu-tests 60 bash -c "$(as_function tests cpu 50 -j 4 -R '^(core|nccl|device|fusion|optim|strategy_device)')"

"$python" scripts/gpu/results.py --from "$out" --json "$out/results.json" --markdown "$out/results.md" || exit 1
if [[ -n $docs ]]; then cp "$out/results.md" docs/gpu-results.md; fi
cat "$out/results.md"
echo "ronda: $((SECONDS - started)) s; $out/results.json"
! grep -qE $'\t(failed|out of time)\t' "$out/stages.tsv"
