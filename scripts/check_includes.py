#!/usr/bin/env python3
"""Holds every #include against the plan of the house: which room may enter which, and where vendors' headers may stand."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# room: the rooms it may include, beside itself
ROOMS = {
    "runtime/core": [],
    "collectives": ["runtime/core"],
    "c_api": ["runtime/core", "collectives"],
    "layers": ["runtime/core"],
    "optim": ["runtime/core"],
    "data": ["runtime/core"],
    "runtime/files": ["runtime/core"],
    "runtime/observe": ["runtime/core"],
    "runtime/resilience": ["runtime/core", "collectives", "runtime/files"],
    "runtime/strategy": ["runtime/core", "collectives", "layers", "optim", "data"],
}
ROOMS["runtime/trainer"] = list(ROOMS)
ROOMS["apps"] = list(ROOMS)

# header: the folders (or files) in which it may be included
VENDORS = {
    r"dnnl": ["layers/onednn"],
    r"mpi\.h": ["collectives", "c_api", "apps/allreduce_bench", "apps/doctor"],  # compared with; described
    r"cuda": ["runtime/core/cuda", "collectives/nccl", "layers/cudnn", "optim/cuda", "data/cuda"],
    r"(cublas|cudnn)": ["layers/cudnn"],
    r"nccl": ["collectives/nccl"],
    r"omp\.h": ["runtime/core"],
    r"zlib": ["data"],
    r"nlohmann": ["runtime/files", "runtime/observe", "apps"],
    r"CLI/": ["apps"],
}
VENDORS[r"ronda/runtime/core/cuda/"] = VENDORS["cuda"]  # headers of ours that include a vendor's
VENDORS[r"ronda/layers/cudnn/"] = VENDORS["(cublas|cudnn)"]
VENDORS[r"ronda/collectives/nccl/"] = VENDORS["nccl"]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def room_of(path: str) -> str | None:
    if path == "ronda.h":
        return "c_api"
    return next((room for room in sorted(ROOMS, key=len, reverse=True) if path.startswith(room + "/")), None)


def complaints(file: pathlib.Path):
    name = file.relative_to(ROOT).as_posix()
    room = room_of(name)
    for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match[1]
        if room and header.startswith("ronda/"):
            target = room_of(header.removeprefix("ronda/"))
            if header == "ronda/ronda.hpp" and room == "apps":
                continue  # the rooms' umbrella, for users
            if target is None:
                yield f"{name}:{number}: {header} is in no room"
            elif target != room and target not in ROOMS[room]:
                yield f"{name}:{number}: {room} may not include {target}"
        for vendor, folders in VENDORS.items():
            if room and re.match(vendor, header.removeprefix("oneapi/dnnl/")) and not any(f"{name}/".startswith(f + "/") for f in folders):
                yield f"{name}:{number}: {header} belongs under {' or '.join(folders)} alone"


def main() -> int:
    files = [f for room in ROOMS for pattern in ("*.hpp", "*.cpp", "*.h", "*.cu", "*.cuh") for f in (ROOT / room).rglob(pattern)]
    found = [text for file in sorted(set(files)) for text in complaints(file)]
    print("\n".join(found) if found else f"{len(set(files))} files keep to the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
