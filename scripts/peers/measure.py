"""What every peer's program shares: its options, its rank and core, its stopwatch, its one line of output.

A program is started as `mpirun -n RANKS python PROGRAM`, whatever it communicates with.
"""

import argparse
import json
import os
import time
from pathlib import Path

from workloads import WORKLOADS, variants

DATA = Path(__file__).resolve().parents[2] / "share" / "mnist"
LEARNING_RATE, MOMENTUM = 0.01, 0.9

RANK = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))
RANKS = int(os.environ.get("PEER_RANKS", os.environ.get("OMPI_COMM_WORLD_SIZE", 1)))
ADDRESS = "127.0.0.1"
PORT = int(os.environ.get("PEER_PORT", 29400))  # this one and the next RANKS - 1 are free


def arguments(peer, description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--workload", choices=list(WORKLOADS), default="mlp", help="model")
    choices = variants(peer, "cnn")
    parser.add_argument("--variant", choices=choices, default=choices[0], help="how the model is run")
    parser.add_argument("--batch-size", type=int, metavar="N", help="samples a rank and step (the workload's)")
    parser.add_argument("--steps", type=int, default=200, metavar="N", help="steps to measure, after the warm-up")
    parser.add_argument("--data", default=DATA, metavar="DIR", help="the four MNIST files")
    options = parser.parse_args()
    options.batch_size = options.batch_size or WORKLOADS[options.workload].batch
    return options


def one_core():
    """Keeps this rank, with all its threads, on a core of its own (as far as there are enough)."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[RANK % len(cores)]})


def as_many_cores_as_ranks():
    """The same for one process that computes for all ranks."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:RANKS])


def report(peer, version, options, train, warm_up=None):
    """Measures train(steps), which returns the last loss, and prints the result on rank 0.

    warm_up: steps that do not count; the workload's, where it is in the table."""
    train(warm_up or WORKLOADS[options.workload].warm_up)
    start = time.perf_counter()
    loss = train(options.steps)
    seconds = time.perf_counter() - start
    if RANK == 0:
        result = {
            "peer": peer,
            "workload": options.workload,
            "ranks": RANKS,
            "samples_per_second": options.steps * options.batch_size * RANKS / seconds,
            "variant": options.variant,
            "version": version,
            "steps": options.steps,
            "loss": loss,
        }
        print(json.dumps(result), flush=True)
