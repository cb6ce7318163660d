#!/usr/bin/env bash
# How fast folders of pictures are read, by Ronda (ronda_data time) and by torchvision's loader with as many workers, in turns.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/comparison.sh"
workers=$(nproc) seconds=20 rounds=3 pictures=2000 data=

usage() {
  cat <<END
Usage: compare_loaders.sh [OPTION]…
Reads pictures as a training of ImageNet does, a random part of 224 x 224, mirrored now and then, normalised, and prints pictures a
second: Ronda's and torchvision's, decoded by Pillow and to tensors. PyTorch and torchvision are installed the first time (6 GB).

  --data DIR        a folder of pictures, a subfolder a class (made-up ones, JPEG, 500 x 375)
  --workers N       threads of ours, processes of theirs (${workers})
  --seconds S       of a run (${seconds})
  --rounds N        runs of each, in turns; the best counts (${rounds})
  --pictures N      that are made up (${pictures})
  --build DIR       our binaries (build/release)
  --venv DIR        where the peer is installed (${venv})
Exit status: 0 done, 1 a run failed, 2 wrong usage or something is missing.
END
}
read_options "data workers seconds rounds pictures build venv" "$@"
require_program ronda_data
require_packages torch torchvision "6 GB" torch torchvision numpy
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [[ -z $data ]]; then
  data=$work/pictures
  echo "Making $pictures pictures"
  "$python" "$here/peers/torch_loader.py" make "$data" "$pictures"
fi
for ((round = 1; round <= rounds; ++round)); do
  echo "Round $round of $rounds" >&2
  "$build/apps/ronda_data" time images "$data" --readers "$workers" --seconds "$seconds" --json >>"$work/ronda"
  for variant in pillow tensor; do
    "$python" "$here/peers/torch_loader.py" time "$data" $variant "$workers" "$seconds" >>"$work/$variant"
  done
done
python3 - "$work" "$workers" "$(processor)" "$("$python" -c 'import torchvision; print(torchvision.__version__)')" <<'END'
import json, sys
from pathlib import Path
work, workers, processor, version = sys.argv[1:]
speeds = {name: [json.loads(line)["samples_per_second"] for line in (Path(work) / name).read_text().splitlines()] for name in ("ronda", "pillow", "tensor")}
print(f"pictures/s with {workers} workers,{processor}, torchvision {version}:")
for name, all in speeds.items():
    print(f"  {name:8}{max(all):8.0f}   of {', '.join(f'{speed:.0f}' for speed in all)}")
print(f"Ronda / the best of torchvision's: {max(speeds['ronda']) / max(max(speeds['pillow']), max(speeds['tensor'])):.2f}")
END
