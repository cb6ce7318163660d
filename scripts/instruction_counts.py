#!/usr/bin/env python3
"""Counts the instructions of hot paths (test/instructions/hot_paths.cpp) under callgrind, and compares them with recorded counts.

    scripts/instruction_counts.py [--record] [--build FOLDER] [--recorded FILE]

A change of more than 2 % fails, by the name of the path. Counts are recorded for each version of the compiler; --record writes them, after a
change that is meant. Counts do not depend on other processes. They depend on the compiler, the build's options, the libraries, and on the
sizes of the processor's caches, by which libraries choose.

Not covered: paths by AVX-512, which callgrind does not know. It shows programs a processor with AVX2, and oneDNN is given
ONEDNN_MAX_CPU_ISA=AVX2. Threads, MPI and GPUs are not covered either, nor how long an instruction takes.

Exit status: 0 all counts are as recorded; 1 one is not, or none are recorded for this compiler; 77 there is no valgrind."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 0.02
FUNCTION = "measured_path"


def compiler_of(build: pathlib.Path) -> str:
    """`g++ 12.2.0`: program and version, as CMake found them."""
    cache = (build / "CMakeCache.txt").read_text()
    program = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M)[1]
    version = subprocess.run([program, "-dumpfullversion", "-dumpversion"], capture_output=True, text=True, check=True).stdout.split()[0]
    return f"{'clang' if 'clang' in program else 'g++'} {version}"


def count(program: pathlib.Path) -> dict[str, int]:
    """By path. Callgrind writes a file for each call of FUNCTION, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        counts, files = pathlib.Path(folder) / "counts", pathlib.Path(folder) / "files"
        files.mkdir()
        command = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={counts}", f"--zero-before={FUNCTION}",
                   f"--dump-after={FUNCTION}", str(program), str(files)]
        environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "OMP_NUM_THREADS": "1", "LC_ALL": "C"}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{program} ended with status {done.returncode} under valgrind")
        names = done.stdout.split()
        return {name: total(pathlib.Path(f"{counts}.{number}")) for number, name in enumerate(names, 1)}


def total(file: pathlib.Path) -> int:
    return int(re.search(r"^(?:totals|summary): (\d+)", file.read_text(), re.M)[1])


def compare(counts: dict[str, int], recorded: dict[str, int]) -> list[str]:
    """Prints a line for each path; returns the names of those that changed, are new, or are gone."""
    wrong = []
    for name in {**recorded, **counts}:
        before, now = recorded.get(name), counts.get(name)
        change = None if before is None or now is None else now / before - 1
        if change is None or abs(change) > TOLERANCE:
            wrong.append(name)
        text = "not recorded" if before is None else "no such path" if now is None else f"{change:+.2%}"
        print(f"{name:20}{now or 0:>14,}  {text}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the counts")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help="a build folder (build/release)")
    parser.add_argument("--recorded", type=pathlib.Path, default=ROOT / "test/instructions/counts.json",
                        help="the recorded counts (test/instructions/counts.json)")
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("skipped: there is no valgrind (apt-get install valgrind)")
        return 77
    subprocess.run(["cmake", "--build", arguments.build, "--target", "hot_paths"], check=True, stdout=subprocess.DEVNULL)
    compiler = compiler_of(arguments.build)
    counts = count(arguments.build / "test/instructions/hot_paths")
    all_recorded = json.loads(arguments.recorded.read_text()) if arguments.recorded.exists() else {}
    wrong = compare(counts, all_recorded.get(compiler, {}))
    if arguments.record:
        all_recorded[compiler] = counts
        arguments.recorded.write_text(json.dumps(all_recorded, indent=2, sort_keys=True) + "\n")
        print(f"recorded for {compiler}")
        return 0
    if wrong:
        print(f"more than {TOLERANCE:.0%} apart from what {arguments.recorded} has for {compiler}: {', '.join(wrong)}; record a change that is "
              "meant by --record")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
