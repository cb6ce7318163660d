#!/usr/bin/env bash
# The headers of cudnn-frontend, which a build for CUDA needs, into build/cudnn-frontend. Fetches nothing that is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=1.32.0
folder=build/cudnn-frontend

[[ ! -f $folder/include/cudnn_frontend.h ]] || exit 0
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
echo "ronda: fetching the headers of cudnn-frontend $version"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$wheels" "nvidia-cudnn-frontend==$version" || {
  echo "ronda: error: cannot fetch cudnn-frontend $version with pip; put its include folder at $folder/include" >&2
  exit 1
}
mkdir -p "$folder"
python3 - "$wheels"/*.whl "$folder" <<'PYTHON'
import sys, zipfile
wheel, folder = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    archive.extractall(folder, [name for name in archive.namelist() if name.startswith("include/") or "LICENSE" in name])
PYTHON
[[ -f $folder/include/cudnn_frontend.h ]] || { echo "ronda: error: the package of cudnn-frontend $version has no include/cudnn_frontend.h" >&2; exit 1; }
