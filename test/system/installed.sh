#!/usr/bin/env bash
# The installed tree is enough: the applications find their data in it, and the examples build against it and run.
# installed.sh APPS BUILD CXX: the build folder to install from, and the compiler it was made with.
source "$(dirname "$0")/lib.sh"
limit=500
build=$(cd "${2:?usage: $0 APPS BUILD CXX}" && pwd) CXX=$3
export CXX

prefix=$work/prefix
what='cmake --install'
run cmake --install "$build" --prefix "$prefix"
expect_status 0

cd "$work" || exit
apps=$prefix/bin
trained 1 mnist_softmax --steps 20
trained 2 mnist_softmax --steps 20
expect_summary world_size 2

for example in first_program custom_loop; do
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
    case $example in
      first_program) expect '97 % or more' at_least "$(awk '/^test accuracy/ { print $3 }' "$work/out")" 97 ;;
      custom_loop) expect 'the same bits' test "$(grep -c ': the same bits$' "$work/out")" -eq 1 ;;
    esac
  done
done

# The program that README shows is what it says.
readme=$beds/../../README.md
block() { # block LANGUAGE: README's first in it
  awk -v fence="\`\`\`$1" '$0 == fence { inside = 1; next } inside && /^```$/ { exit } inside' "$readme"
}
mkdir -p "$work/readme/share"
ln -s "$prefix/share/ronda/mnist" "$work/readme/share/mnist"
block cpp >"$work/readme/main.cpp"
{
  printf 'cmake_minimum_required(VERSION 3.22)\nproject(readme LANGUAGES C CXX)\n'
  block cmake
} >"$work/readme/CMakeLists.txt"
what="building README's program"
run cmake -G Ninja -S "$work/readme" -B "$work/readme/build" -DCMAKE_PREFIX_PATH="$prefix"
expect_status 0
run cmake --build "$work/readme/build"
expect_status 0
cd "$work/readme" || exit
mpi 2 build/program
expect_status 0
expect '98 % or more' at_least "$(awk '$1 == "test" && $2 == "accuracy" { print $3 }' "$work/out" | tail -1)" 0.98
