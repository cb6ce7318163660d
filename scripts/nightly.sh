#!/usr/bin/env bash
# What takes too long for .ci/run, one part after the other; after a part that fails the others still run. At its end it prints the time of
# each part. Some hours.
#   scripts/nightly.sh [PART…]     all parts, or these:
#     tests         all tests, with those that .ci/run leaves out (its `longest`)
#     instructions  instructions of hot paths, compared with recorded counts (scripts/instruction_counts.py)
#     pytorch       300 random models against PyTorch (scripts/check_pytorch_random.sh)
#     tidy          clang-tidy with clang's analyzer (scripts/tidy.sh)
#     mutations     50 changes of algorithms and exchanges, which tests should notice (scripts/mutate.py); survivors are listed, and no failure
#     attack        kills, damaged messages and files at random (scripts/attack.sh)
#     readme        the README's commands on a bare Debian (test/beds/walk_readme.py)
# Exit status: 0 no part failed (a part that lacks its tools is skipped); 1 one did; 2 there is no such part.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all=(tests instructions pytorch tidy mutations attack readme)
run() { # run PART
  case $1 in
    tests) scripts/test.sh ;;
    instructions) scripts/instruction_counts.py ;;
    pytorch) scripts/check_pytorch_random.sh ;;
    tidy) scripts/tidy.sh ;;
    mutations) scripts/mutate.py --count 50 ;;
    attack) scripts/attack.sh ;;
    readme) test/beds/walk_readme.py ;;
  esac
}

parts=("${@:-${all[@]}}")
for part in "${parts[@]}"; do
  [[ " ${all[*]} " == *" $part "* ]] || { sed -n '2,13s/^# \{0,1\}//p' "$0"; [[ $part == --help ]] && exit 0 || exit 2; }
done

status=0
took=()
for part in "${parts[@]}"; do
  echo "== $part"
  begin=$SECONDS
  run "$part"
  case $? in
    0) outcome='' ;;
    77) outcome='  skipped' ;;
    *) outcome='  FAILED' status=1 ;;
  esac
  took+=("$(printf '%7d s  %s%s' $((SECONDS - begin)) "$part" "$outcome")")
done
echo "== times"
printf '%s\n' "${took[@]}"
exit $status
