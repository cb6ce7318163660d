#!/usr/bin/env bash
# The library from C and from Python: both examples, from an installed tree, built by one line of a compiler, or not at all.
# foreign.sh APPS BUILD CC
source "$(dirname "$0")/lib.sh"
limit=120
build=$(cd "${2:?usage: $0 APPS BUILD CC}" && pwd) compiler=$3

prefix=$work/prefix
what='cmake --install'
run cmake --install "$build" --prefix "$prefix"
expect_status 0
library=$(find "$prefix" -name libronda.so -print -quit)
lib=$(dirname "$library")
examples=$prefix/share/ronda/examples

what='libronda.so shows nothing but ronda_*'
others=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^ronda_' | tr '\n' ' ')
expect "no other symbols, found: $others" test -z "$others"
what='its name carries the ABI version'
abi=$(sed -n 's/^#define RONDA_ABI_VERSION //p' "$prefix/include/ronda/ronda.h")
expect "libronda.so.$abi" test -e "$lib/libronda.so.$abi"

what='building the C example'
run "$compiler" -std=c99 -Wall -Wextra -Wpedantic -Werror "$examples/c/allreduce.c" -o "$work/allreduce" \
  -I"$prefix/include" -L"$lib" -lronda -Wl,-rpath,"$lib"
expect_status 0
what='the header is C++ as well'
printf '#include <ronda/ronda.h>\nint main() { return ronda_abi_version() - RONDA_ABI_VERSION; }\n' >"$work/header.cpp"
run "${CXX:-c++}" -Wall -Wextra -Wpedantic -Werror "$work/header.cpp" -o "$work/header" -I"$prefix/include" -L"$lib" -lronda \
  -Wl,-rpath,"$lib"
expect_status 0
run "$work/header"
expect_status 0
for ranks in 1 2 3; do
  mpi $ranks "$work/allreduce"
  expect_status 0
  expect 'all ranks agree' grep -q "$ranks ranks agree" "$work/out"
done

python= # the one on the path, or else the system's, whose NumPy is Debian's package
for candidate in python3 /usr/bin/python3; do
  [[ -n $python ]] || ! "$candidate" -c 'import numpy' 2>/dev/null || python=$candidate
done
if [[ -z $python ]]; then
  [[ ! -s $failed ]] || exit 1
  skip 'the Python example needs NumPy (python3-numpy); the C example passed'
fi
for ranks in 1 2 3; do
  mpi $ranks "$python" "$examples/python/linear_regression.py"
  expect_status 0
  expect 'all ranks agree' grep -q "$ranks ranks agree" "$work/out"
done
cp "$examples"/python/*.py "$work" # a file to copy, wherever that is
RONDA_LIBRARY=$lib/libronda.so mpi 1 "$python" "$work/linear_regression.py"
expect_status 0
