#!/usr/bin/env bash
# CIFAR-10 or CIFAR-100 in the binary version, for load_cifar10(FOLDER) and load_cifar100(FOLDER), from its author's site. Compares the
# checksums that stand there. Fetches nothing that is there.
#   scripts/fetch_cifar.sh 10|100 FOLDER
set -euo pipefail

case ${1-} in
  10) sum=c32a1d4ab5d03f1284b67883e8d87530 inside=cifar-10-batches-bin ;;
  100) sum=03b5dce01913d631647c71ecec9e9cb8 inside=cifar-100-binary ;;
  *)
    echo "usage: $0 10|100 FOLDER" >&2
    exit 2
    ;;
esac
archive=cifar-$1-binary.tar.gz folder=${2:?usage: $0 10|100 FOLDER}
from=${RONDA_CIFAR_SITE:-https://www.cs.toronto.edu/~kriz} # or a mirror

[[ ! -d $folder/$inside ]] || exit 0
mkdir -p "$folder"
work=$(mktemp -d "$folder/.fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "ronda: fetching $from/$archive"
curl --fail --location --silent --show-error --output "$work/$archive" "$from/$archive" || {
  echo "ronda: error: cannot fetch $from/$archive; RONDA_CIFAR_SITE names another site" >&2
  exit 1
}
found=$(md5sum <"$work/$archive")
[[ ${found%% *} == "$sum" ]] || {
  echo "ronda: error: $from/$archive is damaged: expected the MD5 sum $sum, found ${found%% *}; fetch it again" >&2
  exit 1
}
tar -xzf "$work/$archive" -C "$work"
mv "$work/$inside" "$folder/$inside"
