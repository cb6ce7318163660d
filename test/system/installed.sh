#!/usr/bin/env bash
# The installed tree is enough: the applications find their data in it, and an example builds against it and runs.
# installed.sh APPS BUILD CXX: the build folder to install from, and the compiler it was made with.
source "$(dirname "$0")/lib.sh"
limit=500
root=$(cd "$(dirname "$0")/../.." && pwd) build=$(cd "${2:?usage: $0 APPS BUILD CXX}" && pwd) CXX=$3
export CXX

prefix=$work/prefix
what='cmake --install'
run cmake --install "$build" --prefix "$prefix"
expect_status 0

what='a build'
[[ ! -e /var/lib/dpkg/status ]] || expect 'to be configured anew when packages have changed' grep -q '/var/lib/dpkg/status' "$build/build.ninja"

what='the installed headers' # those of the list alone, and they need no others
sed -n 's/^\([a-z][^ ]*\).*/\1/p' "$root/cmake/public_headers.txt" >"$work/public"
printf '%s\n' ronda.h ronda_kv.h ronda.hpp >>"$work/public"
(cd "$prefix/include/ronda" && find . -type f | sed 's|^\./||' | sort) >"$work/out"
expect 'the public headers' diff <(sort "$work/public") <(sort "$work/out")
sed 's|.*|#include <ronda/&>|' "$work/public" >"$work/headers.cpp"
run "$CXX" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -DOMPI_SKIP_MPICXX "$work/headers.cpp" -I"$prefix/include" $(mpicxx --showme:incdirs | sed 's|[^ ]*|-I&|g')
expect_status 0

cd "$work" || exit
apps=$prefix/bin
trained 1 mnist_softmax --steps 20
trained 2 mnist_softmax --steps 20
expect_summary world_size 2

what='the compatibility set against the installed copy'
run cmake -G Ninja -S "$root/test/compatibility" -B "$work/compatibility" -DCMAKE_PREFIX_PATH="$prefix"
expect_status 0
run cmake --build "$work/compatibility"
expect_status 0
mpi 2 "$work/compatibility/compatibility"
expect_status 0
expect 'every program' test "$(grep -c ': as it was$' "$work/out")" -eq 10
for name in coordinator key_value; do
  mpi 2 "$work/compatibility/compatibility_${name}_c"
  expect_status 0
done

example=custom_loop # documents.py builds the others
what="building $example"
run cmake -G Ninja -S "$prefix/share/ronda/examples/$example" -B "$work/$example" -DCMAKE_PREFIX_PATH="$prefix"
expect_status 0
run cmake --build "$work/$example"
expect_status 0
expect 'no warnings' test "$(grep -c 'warning:' "$work/out" "$work/err" | awk -F: '{ sum += $2 } END { print sum }')" -eq 0
for ranks in 1 2; do
  mpi $ranks "$work/$example/$example"
  expect_status 0
  cat "$work/out"
  expect 'the same bits' test "$(grep -c ': the same bits$' "$work/out")" -eq 1
done
