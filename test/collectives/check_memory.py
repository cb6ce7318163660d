#!/usr/bin/env python3
"""Memory of a rank as the ranks become more: check_memory.py [--ranks 8,16,32] PROGRAM MPIRUN…

Runs memory_program on each number of ranks, nodes of four, and looks at each phase: every rank that is added may cost at most
1 KiB, and the last doubling of the ranks at most two and a half times what the one before it cost: nothing grows with their square.
"""
import argparse
import json
import os
import subprocess
import sys

A_RANK = 1024  # bytes that one more rank may cost each of the others
SLACK = 4096   # bytes by which two worlds may differ for other reasons: strings, blocks of a vector


def measure(command, ranks):
    run = subprocess.run([*command[1:], "-n", str(ranks), command[0]], stdout=subprocess.PIPE, text=True, check=True, timeout=600,
                         env=dict(os.environ, RONDA_RANKS_PER_NODE="4"))
    return json.loads(run.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", default="8,16,32")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    sizes = [int(size) for size in options.ranks.split(",")]
    results = [measure(options.command, ranks) for ranks in sizes]
    bad = 0
    print("bytes of the heap, the most of any rank".ljust(42), *(f"{ranks:>9} ranks" for ranks in sizes), "  a rank more")
    for phase in [key for key in results[0] if key != "ranks"]:
        taken = [result[phase] for result in results]
        steps = [after - before for before, after in zip(taken, taken[1:])]
        each = (taken[-1] - taken[0]) / (sizes[-1] - sizes[0])
        wrong = taken[-1] - taken[0] > A_RANK * (sizes[-1] - sizes[0]) + SLACK
        wrong = wrong or any(after > 2.5 * max(before, 0) + SLACK for before, after in zip(steps, steps[1:]))
        bad += wrong
        print(phase.ljust(42), *(f"{value:>15}" for value in taken), f"{each:>13.0f}", "  TOO MUCH" if wrong else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
