#!/usr/bin/env python3
"""Holds every #include against the plan of the house: which room may enter which, what of a room is public, and where
vendors' headers may stand."""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# room: the rooms it may include, beside itself
ROOMS = {
    "core": [],
    "collectives": ["core"],
    "coordinator": ["core", "collectives"],
    "bindings/c": ["core", "collectives", "coordinator", "optim", "runtime/key_value"],
    "layers": ["core"],
    "optim": ["core"],
    "data": ["core"],
    "runtime/io": ["core"],
    "runtime/checkpoint": ["core", "collectives", "runtime/io"],
    "runtime/supervise": ["core"],
    "runtime/key_value": ["core", "collectives", "optim"],
    "runtime/strategy": ["core", "collectives", "layers", "optim", "data", "runtime/key_value"],
    "runtime/onnx": ["core", "layers", "runtime/io"],
}
ROOMS["runtime/trainer"] = [room for room in ROOMS
                            if room not in ("coordinator", "bindings/c", "runtime/supervise")]
ROOMS["apps"] = list(ROOMS)

# Inside collectives, folder: the folders it may include, beside itself and the headers at the room's root. The sources at the
# room's root, and `group`, put everything together.
FOLDERS = {
    "watch": [],
    "host": [],
    "host/transport": ["host"],
    "fabric": ["host", "host/transport"],
    "host/engine": ["host", "host/transport", "fabric", "watch"],
    "host/node": ["host", "host/transport", "host/engine"],
    "host/algorithms": ["host", "host/transport", "host/engine", "host/node"],
    "host/algorithms/allreduce": ["host", "host/transport", "host/engine", "host/node", "host/algorithms"],
    "tuning": ["host", "host/algorithms"],
    "members": ["host", "fabric", "host/transport", "host/engine", "host/node", "host/algorithms", "watch"],
    "host/planning": ["host", "fabric", "host/transport", "host/engine", "host/node", "host/algorithms",
                      "host/algorithms/allreduce", "tuning", "members"],
    "nccl": ["host", "host/engine", "watch", "members"],
    "nccl/cuda": ["nccl"],
    "staged": ["host", "host/engine", "host/algorithms", "host/planning", "members", "nccl"],
    "fabric/mpi": ["host", "fabric", "host/transport", "host/engine", "watch", "group"],
    "fabric/threads": ["fabric", "host/transport"],
}

# Inside the strategies: what a replica is, its step, exchanges that several strategies use, and a folder per strategy. The room's root is
# the table of all.
EXCHANGES = ["replica", "step", "exchange"]
PARTS = ["replica", "step", "exchange", "parts"]
STRATEGY_FOLDERS = {
    "replica": [],
    "step": ["replica"],
    "exchange": ["replica", "step"],
    "sharded": EXCHANGES,
    "local_sgd": EXCHANGES,
    "easgd": EXCHANGES,
    "parameter_server": EXCHANGES,
    "mirrored": [*EXCHANGES, "sharded"],
    "parts": EXCHANGES,
    "pipeline": PARTS,
    "split": PARTS,
}
INNER = {"collectives": FOLDERS, "runtime/strategy": STRATEGY_FOLDERS}

# What others may include of a room beside the headers at its root, and installed ones. Headers of a vendor's folder are for
# the same vendor's folders (VENDORS).
PRIVATE = {
    "apps/allreduce_bench": ["collectives/host/algorithms/", "collectives/tuning/"],  # measures each algorithm by itself
    "apps/doctor": ["collectives/fabric/mpi/mpi.hpp"],
    "apps/ronda_trace.cpp": ["collectives/watch/"],  # reads what ranks wrote down
    # A second interface to the same ranks, whose cycle is a coroutine too.
    "coordinator": ["collectives/group/group.hpp", "collectives/host/task.hpp", "collectives/watch/"],
    # One rule for which pushes an update takes, and how a server answers.
    "runtime/strategy/parameter_server": ["runtime/key_value/detail/"],
    # How what travels is compressed, and what rounding loses is kept.
    "runtime/strategy/parameter_server/pushed_pieces.hpp": ["collectives/host/algorithms/error_feedback.hpp"],
    "runtime/strategy/exchange/node_reduce.cpp": ["collectives/host/node/touch_pages.hpp"],
    "runtime/strategy/sharded/bucket_sums.cpp": ["collectives/host/node/touch_pages.hpp"],
}

# header: the folders (or files) in which it may be included
VENDORS = {
    r"dnnl": ["layers/onednn"],
    r"mpi\.h": ["collectives/fabric/mpi", "collectives/mpi_world.hpp", "bindings/c", "apps/allreduce_bench"],
    r"cuda": ["core/cuda", "collectives/nccl/cuda", "layers/cudnn", "optim/cuda", "data/cuda"],
    r"(cublas|cudnn)": ["layers/cudnn"],
    r"nccl": ["collectives/nccl/cuda"],
    r"omp\.h": ["core"],
    r"zlib": ["data"],
    r"zip\.h": ["data/detail/zip_file.cpp"],
    r"hdf5\.h": ["data/hdf5"],
    r"(jpeglib|jerror)\.h": ["data/jpeg"],
    r"png\.h": ["data/png"],
    r"(onnx|google/protobuf)/": ["runtime/onnx/proto"],
    r"nlohmann": ["runtime/io", "apps"],
    r"CLI/": ["apps"],
    r"toml\+\+": ["apps/config_file.cpp"],
}
VENDORS[r"ronda/core/cuda/"] = VENDORS["cuda"]  # headers of ours that include a vendor's
VENDORS[r"ronda/layers/cudnn/"] = VENDORS["(cublas|cudnn)"]
VENDORS[r"ronda/collectives/nccl/cuda/"] = VENDORS["nccl"]
VENDORS[r"ronda/collectives/fabric/mpi/"] = ["collectives/fabric/mpi", "apps/doctor"]
VENDORS[r"ronda/data/hdf5/"] = VENDORS[r"hdf5\.h"]
PUBLIC_HEADERS = ROOT / "cmake/public_headers.txt"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def room_of(path: str) -> str | None:
    if path in ("ronda.h", "ronda_kv.h"):
        return "bindings/c"
    return next((room for room in sorted(ROOMS, key=len, reverse=True) if path.startswith(room + "/")), None)


def is_under(path: str, places) -> bool:
    return any(f"{path}/".startswith(place.rstrip("/") + "/") for place in places)


def is_vendors(path: str) -> bool:
    return any(re.match(vendor, "ronda/" + path) for vendor in VENDORS)


def folder_of(path: str, room: str) -> str:
    """Within the room; empty: its root."""
    return path.removeprefix(room + "/").rpartition("/")[0]


def is_open(path: str, room: str) -> bool:
    """Whether other rooms may include a header: it stands at the room's root, or is installed."""
    return not folder_of(path, room) or path in installed_headers()


def complaint_about_ours(name: str, room: str, path: str) -> str | None:
    """Of a header of ours, by its path in the tree, that a file of a room includes."""
    target = room_of(path)
    if path == "ronda.hpp" and room == "apps":
        return None  # the rooms' umbrella, for users
    if target is None:
        return f"{path} is in no room"
    inside = folder_of(path, target)
    if target != room:
        if target not in ROOMS[room]:
            return f"{room} may not include {target}"
        allowed = [header for place, headers in PRIVATE.items() if is_under(name, [place]) for header in headers]
        if not is_open(path, target) and not is_vendors(path) and not is_under(path, allowed):
            return f"{path} is private to {target}"
        return None
    here = folder_of(name, room)
    folders = INNER.get(room, {})
    if here in folders and inside != here and inside not in folders[here]:
        if inside or room != "collectives":  # whose root is its public headers
            return f"inside {room}, {here} may not include {inside or 'the root'}"
    return None


@functools.cache
def installed_headers() -> dict[str, bool]:
    """By path: whether it is public."""
    lines = [line.split() for line in PUBLIC_HEADERS.read_text().splitlines() if not line.startswith("#")]
    return {path: not detail for path, *detail in lines}


def includes_of(path: str) -> list[str]:
    """Those of ours, by their path in the tree."""
    names = (match[1] for match in map(INCLUDE.match, (ROOT / path).read_text().splitlines()) if match)
    return [name.removeprefix("ronda/") for name in names if name.startswith("ronda/")]


def complaints_about_installed(installed: dict[str, bool]):
    """An installed header includes installed ones, ronda.hpp public ones, and a header that is not public has a user."""
    files = {path: includes_of(path) for path in installed if (ROOT / path).is_file()}
    for path in installed:
        if path not in files:
            yield f"{PUBLIC_HEADERS.name} lists {path}, which does not exist"
        for header in files.get(path, []):
            if header not in installed:
                yield f"{path} is installed, but {header}, which it includes, is not: see {PUBLIC_HEADERS.name}"
    for header in includes_of("ronda.hpp"):
        if not installed.get(header, False):
            yield f"ronda.hpp includes {header}, which is not public"
    for path in (path for path, public in installed.items() if not public):
        if not any(path in headers for headers in files.values()):
            yield f"{path} is installed, but no public header includes it"


def complaints(file: pathlib.Path):
    name = file.relative_to(ROOT).as_posix()
    room = room_of(name)
    for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match or not room:
            continue
        header = match[1]
        if header.startswith("ronda/"):
            text = complaint_about_ours(name, room, header.removeprefix("ronda/"))
            if text:
                yield f"{name}:{number}: {text}"
        for vendor, folders in VENDORS.items():
            if re.match(vendor, header.removeprefix("oneapi/dnnl/")) and not is_under(name, folders):
                yield f"{name}:{number}: {header} belongs under {' or '.join(folders)} alone"


def main() -> int:
    files = [f for room in ROOMS for pattern in ("*.hpp", "*.cpp", "*.h", "*.cu", "*.cuh") for f in (ROOT / room).rglob(pattern)]
    found = [text for file in sorted(set(files)) for text in complaints(file)]
    found += complaints_about_installed(installed_headers())
    print("\n".join(found) if found else f"{len(set(files))} files keep to the arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
