#!/usr/bin/env python3
"""Trains an application on several numbers of ranks, in turns, and leaves a table and a plot of how it scales.

  scaling.sh mnist_mlp --optimizer adamw
  scaling.sh --ranks 1,2,4,8 --launcher 'srun -n {ranks}' mnist_cnn --global-batch-size 256

strong: all numbers of ranks share the batch of one rank. weak: the batch grows with the ranks. The options after the
application are its own; what is not said there: one thread a rank, 200 steps. scaling.sh calls this.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import svg

ROOT = Path(__file__).resolve().parent.parent.parent


def fail(text):
    print(f"scaling.sh: {text}", file=sys.stderr)
    sys.exit(2)


def powers_to(cores):
    return sorted({2**i for i in range(cores.bit_length()) if 2**i <= cores} | {cores})


def numbers(text):
    try:
        ranks = sorted({int(part) for part in text.split(",")})
    except ValueError:
        raise argparse.ArgumentTypeError(f"not numbers with commas between them: '{text}'") from None
    if ranks[0] < 1:
        raise argparse.ArgumentTypeError(f"{ranks[0]} ranks")
    return ranks


def positive(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"not a number from 1 up: '{text}'")
    return int(text)


def arguments():
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(
        prog="scaling.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--ranks", type=numbers, default=powers_to(cores), help="1,2,… (powers of two, and all cores); 1 is always among them")
    parser.add_argument("--rounds", type=positive, default=3, help="runs of each, in turns; medians count (3)")
    parser.add_argument("--kind", choices=["strong", "weak", "both"], default="both", help="(both)")
    parser.add_argument("--launcher", default="mpirun -n {ranks}", help="what starts the ranks (mpirun -n {ranks})")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release", help="our binaries (build/release)")
    parser.add_argument("--out", type=Path, default=Path("scaling"), help="folder for what is left (scaling)")
    parser.add_argument("application", help="of the folder apps in the build, or a path")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="the application's")
    options = parser.parse_args()
    if "{ranks}" not in options.launcher:
        parser.error("--launcher: {ranks} is missing, which stands for their number")
    named = options.build / "apps" / options.application
    options.program = Path(options.application) if "/" in options.application else named
    if not os.access(options.program, os.X_OK) or options.program.is_dir():
        fail(f"there is no program {options.program}; build it, or name another build with --build")
    if 1 not in options.ranks:
        options.ranks.insert(0, 1)  # what the others are compared with
    return options


def without(words, names):
    """The application's options but those of these names, given as `--name value` or `--name=value`."""
    rest, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word.split("=")[0] in names:
            skip = "=" not in word
        else:
            rest.append(word)
    return rest


class Training:
    """Runs the application and reads its summary."""

    def __init__(self, options, folder):
        self.options = options
        self.summary = Path(folder) / "summary.json"
        given = {word.split("=")[0] for word in options.options}
        if "--summary-json" in given:
            fail("--summary-json is what this script reads; leave it out")
        self.common = ["--quiet", "--summary-json", str(self.summary)]
        if not given & {"--steps", "--epochs"}:
            self.common += ["--steps", "200"]
        if "--threads" not in given:
            self.common += ["--threads", "1"]
        self.environment = dict(os.environ)
        if os.geteuid() == 0:  # Open MPI has to be told that this is meant
            self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def run(self, ranks, batch=None):
        command = shlex.split(self.options.launcher.format(ranks=ranks)) + [str(self.options.program)]
        if batch is None:
            command += self.options.options
        else:
            command += without(self.options.options, {"--batch-size", "--global-batch-size"})
            command += ["--global-batch-size", str(batch)]
        command += self.common
        self.summary.unlink(missing_ok=True)
        try:
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            fail(f"{command[0]} is missing")
        if done.returncode != 0 or not self.summary.exists():
            fail(f"{shlex.join(command)} ended with status {done.returncode}:\n{done.stderr.strip()[-2000:]}")
        return json.loads(self.summary.read_text())


def measure(options, folder):
    """A list of {kind, ranks, global_batch_size, samples_per_second, exposed_share}."""
    training = Training(options, folder)
    batch = training.run(1)["global_batch_size"]  # also brings data into memory and plans into the cache
    kinds = ["strong", "weak"] if options.kind == "both" else [options.kind]
    cases = [(kind, ranks) for kind in kinds for ranks in options.ranks if kind != "weak" or ranks > 1 or kinds == ["weak"]]
    batch_of = {case: batch * case[1] if case[0] == "weak" else batch for case in cases}
    for case in cases:
        training.run(case[1], batch_of[case])  # its plan
    runs = {case: [] for case in cases}
    for round_ in range(options.rounds):
        for case in cases:
            kind, ranks = case
            summary = training.run(ranks, batch_of[case])
            runs[case].append(summary)
            speed = summary["samples_per_second"]
            place = f"round {round_ + 1} of {options.rounds}: {kind}, {ranks} rank{'s' if ranks > 1 else ''}"
            print(f"{place}: {speed:,.0f} samples/s", file=sys.stderr)
    if ("weak", 1) not in runs and "weak" in kinds:
        runs["weak", 1], batch_of["weak", 1] = runs["strong", 1], batch  # the same work
    results = []
    for (kind, ranks), summaries in sorted(runs.items()):
        exposed = [one["allreduce"]["exposed_seconds"] / max(one["train_seconds"], 1e-12) for one in summaries]
        results.append(
            {
                "kind": kind,
                "ranks": ranks,
                "global_batch_size": batch_of[kind, ranks],
                "samples_per_second": median(one["samples_per_second"] for one in summaries),
                "fastest": max(one["samples_per_second"] for one in summaries),
                "slowest": min(one["samples_per_second"] for one in summaries),
                "exposed_share": median(exposed),
            }
        )
    for one in results:
        alone = next(other for other in results if other["kind"] == one["kind"] and other["ranks"] == 1)
        one["speedup"] = one["samples_per_second"] / alone["samples_per_second"]
    return results


def processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def table(options, results):
    command = shlex.join([options.program.name, *options.options])
    lines = [
        f"`{command}` on {processor()}, {len(os.sched_getaffinity(0))} cores; medians of {options.rounds} runs in turns",
        "",
        "| scaling | ranks | global batch | samples/s | slowest … fastest | times one rank | efficiency | waiting for gradients |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in results:
        lines.append(
            f"| {one['kind']} | {one['ranks']} | {one['global_batch_size']} | {one['samples_per_second']:,.0f} "
            f"| {one['slowest']:,.0f} … {one['fastest']:,.0f} | {one['speedup']:.2f} "
            f"| {100 * one['speedup'] / one['ranks']:.0f} % | {100 * one['exposed_share']:.1f} % |"
        )
    return "\n".join(lines) + "\n"


def plot(results):
    speeds, efficiencies = {}, {}
    for kind in sorted({one["kind"] for one in results}):
        mine = [one for one in results if one["kind"] == kind]
        speeds[kind] = [(one["ranks"], one["samples_per_second"]) for one in mine]
        efficiencies[kind] = [(one["ranks"], 100 * one["speedup"] / one["ranks"]) for one in mine]
    alone = next(one["samples_per_second"] for one in results if one["ranks"] == 1)
    at = sorted({one["ranks"] for one in results})
    speeds["(ideal)"] = [(ranks, alone * ranks) for ranks in at]
    panels = [svg.lines("samples a second", "ranks", speeds, at=at), svg.lines("efficiency", "ranks", efficiencies, " %", at)]
    return svg.page(panels)


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ronda-scaling.") as folder:
        results = measure(options, folder)
    text = table(options, results)
    machine = {"processor": processor(), "cores": len(os.sched_getaffinity(0)), "system": platform.platform()}
    command = [options.program.name, *options.options]
    whole = {"command": command, "launcher": options.launcher, "rounds": options.rounds, "machine": machine, "results": results}
    svg.write(options.out / "scaling.json", json.dumps(whole, indent=2) + "\n")
    svg.write(options.out / "scaling.md", text)
    svg.write(options.out / "scaling.svg", plot(results))
    print(text)
    print(f"{options.out}/scaling.md, scaling.json and scaling.svg")


if __name__ == "__main__":
    main()
