#!/usr/bin/env python3
"""Trainings end with the bits that they ended with when same_bits.json was written: a change of the code that changes
no sum and no rounding changes none of them.

    same_bits.py APPS             compares; status 77 on a processor, or with a oneDNN, that the file knows nothing of
    same_bits.py APPS --record    writes what this machine gives into the file

A plan says which implementations compute, so nothing is timed, and equal bits are promised (docs/architecture.md). The
file has plan and parameter_hash of each run, for each processor and version of oneDNN. A commit that records anew says why
the bits are others: another order of a sum, for example. The bits are for one thread a rank.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

RECORD = pathlib.Path(__file__).with_suffix(".json")
EPOCH = ["--epochs", "1", "--global-batch-size", "120"]
MLP, CNN = "mnist_mlp", "mnist_cnn"

# name: ranks, application, options, environment
RUNS = {f"{app} on {ranks}": (ranks, app, EPOCH, {})
        for app in ("mnist_softmax", MLP, CNN) for ranks in (1, 2, 3, 4)}
RUNS |= {
    "short last batches": (4, MLP, ["--epochs", "1", "--global-batch-size", "2857"], {}),
    "accumulated": (2, MLP, EPOCH + ["--accumulate", "3"], {}),
    "adam, clipped": (2, MLP, EPOCH + ["--optimizer", "adam", "--clip-norm", "0.5", "--weight-decay", "0.01"], {}),
    "updated by parts": (2, MLP, ["--hidden", "2048,2048", "--steps", "20", "--global-batch-size", "120"], {}),
    "int8 on a ring": (3, MLP, EPOCH + ["--compression", "int8", "--allreduce", "ring"], {}),
    "two nodes": (4, MLP, EPOCH + ["--allreduce", "hierarchical"], {"RONDA_RANKS_PER_NODE": "2"}),
}
RESUMED = "resumed"  # as MLP on 2, which is interrupted in the middle


def machine(library):
    """Which bits are to be expected: oneDNN chooses its kernels by the processor's model."""
    fields = dict(re.findall(r"^(vendor_id|cpu family|model)\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M))
    return " ".join([library.split(",")[0], *(fields.get(name, "unknown") for name in ("vendor_id", "cpu family", "model"))])


def train(apps, folder, run, plan, more=(), status=0):
    """Trains; the summary, or None where the training was to end before time."""
    ranks, application, options, environment = run
    summary = folder / "summary.json"
    command = [str(apps / application), *options, "--threads", "1", "--quiet", "--plan", str(plan), "--summary-json",
               str(summary), *more]
    done = subprocess.run((["mpirun", "-n", str(ranks)] if ranks > 1 else []) + command, text=True, timeout=240,
                          stdin=subprocess.DEVNULL, capture_output=True, env=os.environ | environment)
    if done.returncode != status:
        sys.exit(f"FAILED: status {done.returncode}, expected {status}: {' '.join(command)}\n{done.stderr}")
    return json.loads(summary.read_text()) if status == 0 else None


def hashes_of(apps, folder, name, plans):
    """The hashes that a run adds, by the plan where there is one; makes that if it is missing."""
    folder.mkdir()
    plan, run = folder / "plan", RUNS[name]
    if name in plans:
        plan.write_text(json.dumps(plans[name]))
    else:
        train(apps, folder, run, plan)  # what was timed is kept for what is recorded
    found = {name: train(apps, folder, run, plan)["parameter_hash"]}
    plans.setdefault(name, json.loads(plan.read_text()))
    if name == f"{MLP} on 2":
        saving = ["--checkpoint-dir", str(folder / "checkpoints")]
        train(apps, folder, run, plan, [*saving, "--inject", "stop@217:1"], status=75)
        found[RESUMED] = train(apps, folder, run, plan, [*saving, "--resume"])["parameter_hash"]
    return found


def hashes(apps, folder, plans):
    """The parameter_hash of each run. Where all have plans nothing is timed, so a few run at a time."""
    found = {}
    with concurrent.futures.ThreadPoolExecutor(3 if plans else 1) as runners:
        runs = [runners.submit(hashes_of, apps, folder / str(number), name, plans) for number, name in enumerate(RUNS)]
        for run in runs:
            found |= run.result()
            for name, parameters in run.result().items():
                print(f"{name}: {parameters}", flush=True)
    return found


def main():
    apps, recording = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] == ["--record"]
    records = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    with tempfile.TemporaryDirectory(prefix="ronda-test.") as name:
        folder = pathlib.Path(name)
        probe = folder / "probe.plan"
        train(apps, folder, (1, "mnist_softmax", ["--steps", "1"], {}), probe)
        here = machine(json.loads(probe.read_text())["environment"]["library"])
        if recording:
            plans = {}
            records[here] = {"hashes": hashes(apps, folder, plans), "plans": plans}
            RECORD.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n")
            return
        if here not in records:
            print(f"skipped: no bits are recorded for {here}; same_bits.py APPS --record does")
            sys.exit(77)
        expected = records[here]["hashes"]
        found = hashes(apps, folder, records[here]["plans"])
    wrong = [name for name in expected if found.get(name) != expected[name]]
    for name in wrong:
        print(f"FAILED: {name}: parameters {found.get(name)}, recorded {expected[name]}")
    if found[RESUMED] != found[f"{MLP} on 2"]:
        wrong.append(RESUMED)
        print("FAILED: the resumed training differs from the one that went through")
    sys.exit(1 if wrong else 0)


main()
