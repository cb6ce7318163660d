#!/usr/bin/env bash
# From nothing to a trained network: installs missing packages, builds everything except the tests (build/release), trains the CNN on
# MNIST with two ranks.
#   scripts/quickstart.sh [options of mnist_cnn]
set -euo pipefail
here=$PWD # options may name files
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

install_packages "${packages[@]}"
build release installed
allow_root_and_few_cores 2
echo "ronda: mpirun -n 2 build/release/apps/mnist_cnn $*"
cd "$here"
exec mpirun -n 2 "$root/build/release/apps/mnist_cnn" "$@"
