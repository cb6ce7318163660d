#!/usr/bin/env python3
"""Runs our applications and the peers in turns on the same work, and prints who is how fast.

compare_peers.sh installs the peers and calls this.
"""

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import samples
from measure import DATA, LEARNING_RATE, MOMENTUM
from workloads import PROGRAMS, WORKLOADS, variants

HERE = Path(__file__).resolve().parent
RUN_LIMIT = 900  # seconds
SUMMARY_WARM_UP = 10  # steps that the rate in our own summaries leaves out
CORES = sorted(os.sched_getaffinity(0))


class RunFailed(Exception):
    pass


class Ronda:
    def __init__(self, workload, ranks, options):
        self.name = "ronda" if ranks == options.ranks else f"ronda, {ranks} rank"
        self.ranks, self.options, self.warm_up = ranks, options, WORKLOADS[workload].warm_up
        self.variants = [f"{ranks} rank" if ranks == 1 else f"{ranks} ranks"]
        application, *arguments = WORKLOADS[workload].application
        data = samples.files(workload, options.data, options.venv)
        self.command = [options.build / "apps" / application, *arguments, "--data", data, "--quiet"]
        self.command += ["--batch-size", batch_size(workload, options), "--optimizer", "momentum", "--momentum", MOMENTUM]
        self.command += ["--schedule", "constant", "--learning-rate", LEARNING_RATE]

    def run(self, _, steps):
        """Measures so many steps: (samples a second, version)."""
        steps += self.warm_up
        with tempfile.TemporaryDirectory() as directory:
            summary, metrics = Path(directory) / "summary.json", Path(directory) / "metrics.jsonl"
            command = [*self.command, "--steps", steps, "--epochs", steps, "--summary-json", summary]
            if self.warm_up < SUMMARY_WARM_UP:
                command += ["--metrics", metrics]
            binding = "core" if self.ranks <= len(CORES) else "none"
            # What is fastest here is timed anew, as peers' compilers do: an earlier run may have timed it beside others' work.
            mpirun(self.ranks, binding, command, self.options, RONDA_CACHE_DIR=directory)
            result = json.loads(summary.read_text())
            if self.warm_up == SUMMARY_WARM_UP:
                return result["samples_per_second"], result["version"]
            lines = [json.loads(line) for line in metrics.read_text().splitlines()][self.warm_up :]
        return sum(line["samples"] for line in lines) / sum(line["seconds"] for line in lines), result["version"]


class Peer:
    def __init__(self, name, workload, options):
        self.name, self.ranks, self.options = name, options.ranks, options
        found = variants(name, workload)
        self.variants = [variant for variant in found if variant in options.variants] or found
        self.processes = 1 if name == "jax" else self.ranks
        python = options.venv / name / "bin" / "python"
        self.command = [python, HERE / PROGRAMS[name], "--workload", workload, "--data", options.data]
        self.command += ["--batch-size", batch_size(workload, options)]

    def run(self, variant, steps):
        """Measures so many steps: (samples a second, version)."""
        command = [*self.command, "--variant", variant, "--steps", steps]
        output = mpirun(self.processes, "none", command, self.options)  # the programs choose their cores
        result = json.loads(output.splitlines()[-1])
        return result["samples_per_second"], result["version"]


def batch_size(workload, options):
    return options.batch_size or WORKLOADS[workload].batch


def mpirun(processes, binding, command, options, **more_environment):
    """The command's output; it runs with one thread a rank, as root too."""
    launch = ["mpirun", "-n", processes, "--bind-to", binding, "--timeout", RUN_LIMIT]
    if processes > len(CORES):
        launch.append("--oversubscribe")
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PEER_PORT": str(free_ports(processes)),
        "PEER_RANKS": str(options.ranks),
        "JAX_COMPILATION_CACHE_DIR": str(options.venv / "jax_compiled"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    } | more_environment
    words = [str(word) for word in [*launch, *command]]
    with open(options.log, "a") as log:
        print("\n$", *words, file=log, flush=True)
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=log, env=environment, text=True)
    if done.returncode != 0:
        raise RunFailed(f"status {done.returncode}")
    return done.stdout


def free_ports(count):
    """The first of so many neighbouring ports that nobody uses, below those that the system gives out."""
    for first in range(20000 + os.getpid() % 5000, 32000, count):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise RunFailed("no free ports")


class Disturbance:
    """The share of our cores' time that other programs took while the block ran."""

    def __enter__(self):
        self.start = time.monotonic(), busy_seconds(), own_seconds()
        return self

    def __exit__(self, *_):
        wall, busy, own = (now - then for now, then in zip((time.monotonic(), busy_seconds(), own_seconds()), self.start))
        self.share = max(0.0, (busy - own) / (wall * len(CORES)))


def busy_seconds():
    ticks = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in CORES:
            user, nice, system, _idle, _iowait, interrupts, soft_interrupts, stolen = map(int, fields[:8])
            ticks += user + nice + system + interrupts + soft_interrupts + stolen
    return ticks / os.sysconf("SC_CLK_TCK")


def own_seconds():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def attempt(label, workload, contender, variant, steps, options):
    """One run, shown as it goes; None if it failed. A text's bytes count as samples."""
    print(f"  {label:<10} {contender.name:<14} {variant:<24}", end="", file=sys.stderr, flush=True)
    try:
        with Disturbance() as disturbance:
            speed, version = contender.run(variant, steps)
            speed *= WORKLOADS[workload].bytes or 1
    except (RunFailed, OSError, ValueError, LookupError) as error:
        print(f"failed ({error}), see {options.log}", file=sys.stderr)
        return None
    note = f"   others took {disturbance.share:.0%} of the cores" if disturbance.share > 0.03 else ""
    print(f"{shown(speed)} samples/s{note}", file=sys.stderr)
    return {"samples_per_second": speed, "version": version, "disturbance": round(disturbance.share, 3)}


def shown(speed):
    return f"{speed:>12,.0f}" if speed >= 1000 else f"{speed:>12.4g}"


def choose_variant(workload, contender, options):
    """The fastest of the contender's variants, and how many steps to measure; None if all fail."""
    if options.steps and len(contender.variants) == 1:
        return contender.variants[0], options.steps
    speeds, steps = {}, WORKLOADS[workload].trial_steps
    for _ in range(options.trials):
        for variant in contender.variants:
            if result := attempt("trial", workload, contender, variant, steps, options):
                speeds[variant] = max(speeds.get(variant, 0), result["samples_per_second"])
    if not speeds:
        return None
    variant, speed = max(speeds.items(), key=lambda item: item[1])
    a_step = batch_size(workload, options) * contender.ranks * (WORKLOADS[workload].bytes or 1)
    return variant, options.steps or max(min(10, steps), round(options.seconds * speed / a_step))


def compare(workload, options):
    """The results by contender: its variant, all its rounds, the best of them and their spread."""
    print(workload, file=sys.stderr)
    contenders = [Peer(name, workload, options) for name in options.peers if variants(name, workload)]
    if not options.skip_ours:
        scaling = [Ronda(workload, 1, options)] if options.ranks > 1 and not options.skip_one_rank else []
        contenders = [Ronda(workload, options.ranks, options), *contenders, *scaling]

    plans = []
    for contender in contenders:
        if choice := choose_variant(workload, contender, options):
            plans.append((contender, *choice))

    rounds = {contender.name: [] for contender, _, _ in plans}
    for number in range(1, options.rounds + 1):
        for contender, variant, steps in plans:
            if result := attempt(f"round {number}/{options.rounds}", workload, contender, variant, steps, options):
                rounds[contender.name].append(result)

    results = {}
    for contender, variant, steps in plans:
        if measured := rounds[contender.name]:
            speeds = [result["samples_per_second"] for result in measured]
            results[contender.name] = {
                "variant": variant,
                "version": measured[0]["version"],
                "ranks": contender.ranks,
                "steps": steps,
                "batch_size": batch_size(workload, options),
                "samples_per_second": max(speeds),
                "spread": (max(speeds) - min(speeds)) / max(speeds),
                "rounds": measured,
            }
    complete = len(results) == len(contenders)
    return {"results": results, "ratios": ratios(results, options), "complete": complete}


def ratios(results, options):
    """Ours over each peer and over the best of them, and ours over ours on one rank."""
    if "ronda" not in results:
        return {}
    ours = results["ronda"]["samples_per_second"]
    over = {name: ours / results[name]["samples_per_second"] for name in results if name != "ronda"}
    peers = [over[name] for name in options.peers if name in over]
    return over | ({"best peer": min(peers)} if peers else {})


def machine():
    model = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    mpi = subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout.splitlines()
    return {
        "cpu": model[0].split(":")[1].strip() if model else "unknown",
        "cores": len(CORES),
        "kernel": os.uname().release,
        "mpi": mpi[0] if mpi else "unknown",
        "python": sys.version.split()[0],
    }


def print_table(report):
    about, settings = report["machine"], report["settings"]
    print(f"\n{about['cpu']}, {about['cores']} cores, Linux {about['kernel']}, {about['mpi']}")
    versions = {(name, result["version"]) for w in report["workloads"].values() for name, result in w["results"].items()}
    print("; ".join(f"{name} {version}" for name, version in sorted(versions) if not name.startswith("ronda, ")))
    print(
        f"{settings['ranks']} ranks, 1 thread a rank, float32, the best of {settings['rounds']} rounds; "
        "samples a second, of gpt bytes a second\n"
    )
    print(f"{'workload':<10} {'program':<14} {'variant':<24} {'samples/s':>12} {'spread':>8} {'ours over it':>14}")
    for workload, outcome in report["workloads"].items():
        for name, result in outcome["results"].items():
            ratio = f"{outcome['ratios'][name]:.2f}" if name in outcome["ratios"] else ""
            print(
                f"{workload:<10} {name:<14} {result['variant']:<24} {shown(result['samples_per_second'])} "
                f"{result['spread']:>8.1%} {ratio:>14}"
            )
        if "best peer" in outcome["ratios"]:
            print(f"{workload:<10} {'best peer':<62} {outcome['ratios']['best peer']:>14.2f}")


def every_variant():
    return {variant for peer in PROGRAMS for workload in WORKLOADS for variant in variants(peer, workload)}


def names(allowed):
    def parse(text):
        chosen = [name for name in text.split(",") if name]
        if unknown := set(chosen) - set(allowed):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(allowed)}")
        return chosen

    return parse


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--venv", type=Path, required=True, metavar="DIR", help="holds an environment for each peer")
    parser.add_argument("--build", type=Path, required=True, metavar="DIR", help="our binaries")
    parser.add_argument("--only", type=names(WORKLOADS), default=list(WORKLOADS), metavar="NAMES", help="workloads")
    parser.add_argument("--peers", type=names(PROGRAMS), default=list(PROGRAMS), metavar="NAMES", help="peers")
    parser.add_argument("--variants", type=names(every_variant()), default=[], metavar="NAMES", help="variants to try")
    parser.add_argument("--skip-ours", action="store_true", help="run the peers alone")
    parser.add_argument("--skip-one-rank", action="store_true", help="leave out ours on one rank")
    parser.add_argument("--ranks", type=int, default=2, metavar="N", help="processes")
    parser.add_argument("--batch-size", type=int, metavar="N", help="samples a rank and step (the workload's)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each, in turns")
    parser.add_argument(
        "--trials", type=int, default=2, metavar="N", help="of each variant; another program may disturb one"
    )
    parser.add_argument("--seconds", type=float, default=8, metavar="S", help="training time of a run, about")
    parser.add_argument("--steps", type=int, metavar="N", help="steps of a run, instead; who has one variant needs no trial")
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="the four MNIST files")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    options = parser.parse_args()
    options.log = options.venv / "compare.log"
    return options


def main():
    options = parse_arguments()
    options.log.write_text("")
    report = {
        "machine": machine(),
        "settings": {name: getattr(options, name) for name in ("ranks", "rounds", "seconds", "steps")},
        "workloads": {workload: compare(workload, options) for workload in options.only},
    }
    print_table(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return 0 if all(outcome["complete"] for outcome in report["workloads"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
