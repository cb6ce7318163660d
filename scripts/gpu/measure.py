#!/usr/bin/env python3
"""Measures our applications and PyTorch on the same work, in turns, and appends a JSON line for each measurement to a file,
so that what is measured stays when time runs out."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
APPLICATIONS = {"mlp": "mnist_mlp", "cnn": "mnist_cnn"}
LEARNING_RATE, MOMENTUM = 0.01, 0.9
TRAINING_SAMPLES = 60000
TRIAL_STEPS = 200
OURS = ["float32", "tf32", "mixed_bfloat16"]


class OutOfTime(Exception):
    pass


class Clock:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()


def ours(options, clock, workload, batch, dtype, steps):
    """A line for one run of so many steps."""
    line = {"program": "Ronda", "workload": workload, "batch": batch, "dtype": dtype, "variant": "", "device": options.device}
    epochs = -(-steps * batch // TRAINING_SAMPLES) + 1
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        command = [options.build / "apps" / APPLICATIONS[workload], "--device", options.device, "--dtype", dtype]
        command += ["--batch-size", batch, "--steps", steps, "--epochs", epochs, "--quiet", "--summary-json", summary]
        command += ["--optimizer", "momentum", "--momentum", MOMENTUM, "--schedule", "constant", "--learning-rate", LEARNING_RATE]
        if clock.left() < 2:
            raise OutOfTime
        try:
            run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=min(60, clock.left()))
        except subprocess.TimeoutExpired:
            return line | {"error": "not over in time"}
        except OSError as error:
            return line | {"error": str(error)}
        if run.returncode != 0:
            messages = [text for text in run.stderr.splitlines() if text.startswith("ronda: error: ")]
            return line | {"error": messages[0] if messages else f"status {run.returncode}"}
        result = json.loads(summary.read_text())
    line |= {key: result.get(key) for key in ("samples_per_second", "version", "step_microseconds", "final_train_loss")}
    return line | {"ran_on": result.get("device")}


class Log:
    def __init__(self, path):
        self.path = path

    def add(self, line):
        print(json.dumps(line), flush=True)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def steps_for(line, batch, seconds):
    return max(TRIAL_STEPS, int(line["samples_per_second"] * seconds / batch))


def torch(options, limit, log, workload, batches, dtypes):
    """All of PyTorch's ways in one process, which begins once; its lines are kept as they come."""
    if limit < 5:
        raise OutOfTime
    variants = "eager" if options.device == "cpu" else "eager,graph,compiled,compiled with graphs"
    command = [options.python, ROOT / "scripts/peers/torch_gpu.py", "--workload", workload, "--device", options.device]
    command += ["--batches", ",".join(map(str, batches)), "--dtypes", ",".join(dtypes), "--variants", variants]
    command += ["--seconds", options.seconds]
    process = subprocess.Popen(["timeout", "-k", "3", str(limit), *map(str, command)], stdout=subprocess.PIPE, text=True)
    for text in process.stdout:
        if text.startswith("{"):
            log.add(json.loads(text))
    if process.wait() not in (0, 124, 137):  # done, or out of time
        log.add({"program": "PyTorch", "workload": workload, "batch": batches[0], "dtype": dtypes[0], "variant": "",
                 "error": f"{options.python} does not run scripts/peers/torch_gpu.py: is PyTorch installed?"})


def compare(options, seconds, log, workload, batches, dtypes):
    """Ours, PyTorch, ours once more, within so many seconds: float32 first, of which the claims are. False where something
    failed or there was no time for it."""
    clock, complete, steps = Clock(seconds), True, {}
    for dtype in [dtype for dtype in dtypes if dtype in OURS]:
        for batch in batches:
            if clock.left() < 0.65 * seconds:  # the rest is PyTorch's, and for the second turn
                print(f"no time left for {workload}, batch {batch}, {dtype}", flush=True)
                complete = False
                continue
            line = ours(options, clock, workload, batch, dtype, TRIAL_STEPS)
            if "error" not in line:
                steps[batch, dtype] = steps_for(line, batch, options.seconds)
                line = ours(options, clock, workload, batch, dtype, steps[batch, dtype])
            log.add(line)
            complete = complete and "error" not in line
    torch(options, clock.left() - 0.15 * seconds, log, workload, batches, dtypes)
    try:
        for (batch, dtype), count in steps.items():
            log.add(ours(options, clock, workload, batch, dtype, count))
    except OutOfTime:
        print(f"no time left for the second turn of {workload}", flush=True)  # the first one's results count
    return complete


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="of our applications")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--append", required=True, metavar="FILE")
    parser.add_argument("--python", default=sys.executable, help="that has PyTorch")
    parser.add_argument("--seconds-left", type=float, default=180)
    parser.add_argument("--seconds", type=float, default=1.5, help="of each measurement")
    options = parser.parse_args()
    clock, log = Clock(options.seconds_left), Log(options.append)
    on_cpu = options.device == "cpu"
    batches = [64] if on_cpu else [64, 4096]
    dtypes = ["float32"] if on_cpu else ["float32", "tf32", "mixed_bfloat16"]
    complete = True
    for number, workload in enumerate(APPLICATIONS):
        try:
            share = clock.left() / (len(APPLICATIONS) - number)
            complete = compare(options, share, log, workload, batches, dtypes) and complete
        except OutOfTime:
            print(f"no time left for the rest of {workload}", flush=True)
            complete = False
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
