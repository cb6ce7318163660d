#!/usr/bin/env python3
"""What allreduce does over networks of several hosts, made by netns.sh: a table, and JSON. Needs root.

Each row is a run of bench_allreduce with MPI_Allreduce in turns beside it; docs/performance.md has the results.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# name: hosts, ranks on each, delay, algorithms, smallest and largest bytes
BEDS = {
    "line": (4, 1, None, ["ring"], "64M", "64M"),  # how much of the rate arrives
    "pair": (2, 1, None, ["ring"], "1M", "64M"),  # one connection, in both directions
    "nodes": (2, 2, None, ["hierarchical"], "64K", "64M"),  # ranks of a node share its cable
    "delay": (4, 1, "2ms", ["ring", "halving", "doubling", "auto"], "1K", "64M"),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(BEDS), help="which of them (%(default)s)")
    parser.add_argument("--rate", default="1gbit", help="of each host's link (%(default)s)")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build/release",
                        help="folder of the binaries (build/release)")
    parser.add_argument("--json", type=pathlib.Path, help="file for the results")
    options = parser.parse_args()
    options.only = options.only.split(",")
    for name in options.only:
        if name not in BEDS:
            parser.error(f"no bed '{name}'; there are {', '.join(BEDS)}")
    return options


def measure(options, name):
    hosts, ranks, delay, algorithms, smallest, largest = BEDS[name]
    bed = [HERE / "netns.sh", "--rate", options.rate]
    if delay:
        bed += ["--delay", delay, "--switch", options.build / "test/beds/delayed_switch"]
    rows = []
    for algorithm in algorithms:
        with tempfile.NamedTemporaryFile(suffix=".json") as results:
            bench = [options.build / "apps/bench_allreduce", "--algorithm", algorithm, "--min-bytes", smallest,
                     "--max-bytes", largest, "--iterations", "1", "--warmup", "1", "--compare", "mpi",
                     "--json", results.name]
            run = subprocess.run([*bed, str(hosts), str(ranks), "mpirun", *bench], stdout=subprocess.DEVNULL)
            if run.returncode != 0:
                sys.exit(run.returncode if run.returncode == 77 else 1)
            found = json.load(results)["results"]
        for row in found:
            row.update(bed=name, hosts=hosts, ranks_a_host=ranks, rate=options.rate, delay=delay, asked=algorithm)
        show(found)
        rows += found
    return rows


def show(rows):
    for row in rows:
        algorithm = row["algorithm"] if row["asked"] == row["algorithm"] else f"{row['asked']}: {row['algorithm']}"
        print(f"| {row['hosts']} x {row['ranks_a_host']} | {row['rate']}{', ' + row['delay'] if row['delay'] else ''} "
              f"| {row['bytes']} | {algorithm} | {row['microseconds'] / 1e3:.2f} ms | {row['busbw_GBps'] * 8:.3f} "
              f"| {row['mpi_microseconds'] / 1e3:.2f} ms | {row['mpi_microseconds'] / row['microseconds']:.2f} |"
              + ("" if row["wrong"] == 0 else f" {row['wrong']} WRONG"), flush=True)


def main():
    options = arguments()
    print("| hosts x ranks | link | bytes | algorithm | time | busbw, Gbit/s | MPI_Allreduce | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    rows = [row for name in options.only for row in measure(options, name)]
    if options.json:
        options.json.write_text(json.dumps({"results": rows}, indent=2) + "\n")
    return 1 if any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
