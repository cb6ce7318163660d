#!/usr/bin/env python3
"""What allreduce does over networks of several hosts, made by netns.sh: tables, and JSON. Needs root.

Each part is one run of bench_allreduce, which takes all that it compares in turns; docs/performance.md has the results.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# name: what for, hosts, ranks on each, delay, options of bench_allreduce and of mpirun; each takes one to three minutes
PARTS = {
    "line": ("how much of the rate arrives, and what compression makes of it", 4, 1, None,
             "--algorithm ring --compression all --min-bytes 64M --max-bytes 64M --compare mpi"),
    "pair": ("one connection, in both directions", 2, 1, None,
             "--algorithm ring --min-bytes 256K --max-bytes 64M --compare mpi"),
    "nodes": ("ranks of a node share its cable", 2, 2, None,
              "--algorithm hierarchical --min-bytes 64K --max-bytes 64M --compare mpi"),
    "nodes-dealt": ("the same with ranks dealt out in turns: 0 and 2 here, 1 and 3 there", 2, 2, None,
                    "--algorithm hierarchical --min-bytes 64K --max-bytes 64M --compare mpi", "--map-by", "node"),
    "auto": ("what auto chooses", 4, 1, None, "--algorithm all --calibrate --min-bytes 1K --max-bytes 16M"),
    "auto-long": ("the same for the longest", 4, 1, None,
                  "--algorithm all --calibrate --min-bytes 64M --max-bytes 64M"),
    "auto-nodes": ("the same, nodes of two ranks", 2, 2, None,
                   "--algorithm all --calibrate --min-bytes 1K --max-bytes 16M"),
    "delay": ("the same, far away", 4, 1, "2ms", "--algorithm all --calibrate --min-bytes 1K --max-bytes 16M"),
    "delay-long": ("the same, far away, for the longest", 4, 1, "2ms",
                   "--algorithm all --calibrate --min-bytes 64M --max-bytes 64M"),
    "three": ("what auto chooses between three hosts", 3, 1, None,
              "--algorithm all --calibrate --min-bytes 1K --max-bytes 16M"),
    "delay-three": ("the same, far away", 3, 1, "2ms", "--algorithm all --calibrate --min-bytes 1K --max-bytes 16M"),
    "delay-pair": ("the same, two hosts far away", 2, 1, "2ms",
                   "--algorithm all --calibrate --min-bytes 1K --max-bytes 64M"),
    "compression": ("what is sent, and when auto compresses it", 4, 1, None,
                    "--algorithm auto --compression all --calibrate --min-bytes 1K --max-bytes 16M"),
}


def arguments():
    parts = "\n".join(f"  {name:12} {part[0]}" for name, part in PARTS.items())
    parser = argparse.ArgumentParser(description=f"{__doc__}\nparts:\n{parts}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="names of parts, with commas between (all of them)")
    parser.add_argument("--rate", default="1gbit", help="of each host's cable (%(default)s)")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build/release",
                        help="folder of the binaries (build/release)")
    parser.add_argument("--json", type=pathlib.Path,
                        help="file for the results; what it has of other parts stays there")
    options = parser.parse_args()
    options.only = options.only.split(",")
    for name in options.only:
        if name not in PARTS:
            parser.error(f"no part '{name}'; there are {', '.join(PARTS)}")
    return options


def measure(options, name):
    _, hosts, ranks, delay, bench, *mpirun = PARTS[name]
    bed = [HERE / "netns.sh", "--rate", options.rate]
    if delay:
        bed += ["--delay", delay, "--switch", options.build / "test/beds/delayed_switch"]
    with tempfile.TemporaryDirectory() as folder:
        results = pathlib.Path(folder) / "results.json"
        run = subprocess.run([*bed, str(hosts), str(ranks), "mpirun", *mpirun,
                              options.build / "apps/bench_allreduce", *bench.split(), "--warmup", "1", "--json", results],
                             stdout=subprocess.DEVNULL, check=False)
        if run.returncode != 0:
            sys.exit(run.returncode if run.returncode == 77 else 1)
        rows = json.loads(results.read_text())["results"]
    for row in rows:
        row.update(part=name, hosts=hosts, ranks_a_host=ranks, rate=options.rate, delay=delay)
    return rows


def way(row):
    """As bench_allreduce prints it."""
    text = row["algorithm"] if row["asked"] != "auto" else f"auto: {row['algorithm']}"
    if row["asked_compression"] == "auto":
        return f"{text}, auto: {row['compression']}"
    return text if row["compression"] == "none" else f"{text}, {row['compression']}"


def best_of(columns, times):
    """Of what auto may choose: it never takes fp16 or int8."""
    return min(time for (_, compression), time in zip(columns, times) if compression in ("none", "bf16"))


def show(name, rows):
    """Medians. What is compared with MPI has a line each; else a line a size, its times beside each other."""
    head = rows[0]
    print(f"\n{name}: {head['hosts']} hosts of {head['ranks_a_host']}, {head['rate']}"
          f"{', ' + head['delay'] + ' of delay' if head['delay'] else ''}, milliseconds\n")
    if "mpi_microseconds" in head:
        print("| bytes | algorithm | time | bus bandwidth, Gbit/s | MPI_Allreduce | ratio |\n|---|---|---|---|---|---|")
        for row in rows:
            bandwidth = row["busbw_GBps"] * row["microseconds"] / row["median_microseconds"] * 8
            print(f"| {row['bytes']} | {way(row)} | {row['median_microseconds'] / 1e3:.4g} | {bandwidth:.3f} "
                  f"| {row['mpi_microseconds'] / 1e3:.4g} | {row['mpi_microseconds'] / row['median_microseconds']:.2f} |")
        return
    by_auto = [row for row in rows if "auto" in (row["asked"], row["asked_compression"])]
    if any(row["asked_compression"] == "auto" for row in rows):
        by_auto = [row for row in rows if row["asked_compression"] == "auto"]
    others = [row for row in rows if row not in by_auto]
    columns = list(dict.fromkeys((row["asked"], row["asked_compression"]) for row in others))
    titles = [asked if compression == "none" else f"{asked}, {compression}" for asked, compression in columns]
    print(f"| bytes | {' | '.join(titles)} | auto took | over the best |\n|---" + "|---" * (len(columns) + 2) + "|")
    for chosen in by_auto:
        times = [next(row["median_microseconds"] for row in others
                      if row["bytes"] == chosen["bytes"] and (row["asked"], row["asked_compression"]) == column)
                 for column in columns]
        print(f"| {chosen['bytes']} | {' | '.join(f'{time / 1e3:.4g}' for time in times)} "
              f"| {way(chosen)}, {chosen['median_microseconds'] / 1e3:.4g} "
              f"| {chosen['median_microseconds'] / best_of(columns, times):.2f} |")


def main():
    options = arguments()
    kept = []
    if options.json and options.json.exists():
        kept = [row for row in json.loads(options.json.read_text())["results"] if row["part"] not in options.only]
    rows = []
    for name in options.only:
        rows += measure(options, name)
        show(name, [row for row in rows if row["part"] == name])
        sys.stdout.flush()
        if options.json:
            options.json.write_text(json.dumps({"results": kept + rows}, indent=2) + "\n")
    return 1 if any(row["wrong"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
