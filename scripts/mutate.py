#!/usr/bin/env python3
"""Changes one token of an algorithm or an exchange, builds the tests that cover it, runs them, and lists the changes that no test notices.

    scripts/mutate.py [--count N] [--seed S] [--only GLOB] [--jobs J]

Mutations: an arithmetic operator becomes another, a comparison includes or excludes its bound, a whole number is one more, a statement is
removed. Comments, texts, errors and assertions are left alone. All happens in a copy of the tree, build/mutants, which later runs use again;
the first run builds it, which takes as long as any build. A survivor is a test that is missing, or a change that changes nothing: look at it.

Exit status: 0 all mutations were tried; 1 the tests fail without a mutation, or the copy does not build."""
import argparse
import fnmatch
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPY = ROOT / "build/mutants"

# folder of sources: the programs and the tests (of ctest, those that fail soonest first) that cover it
COVERED = {
    "collectives/host/algorithms": ("test_collectives", [
        r"^(algorithms|compression|reductions|cost_model)$",
        r"^(allreduce|collectives)[.](3|4)_ranks$|^(allreduce|collectives)[.]two_a_node[.]4_ranks$|^calibration[.]3_ranks$"]),
    "runtime/strategy/exchange": ("test_strategy test_strategy_allocation", [r"^strategy_.*[.]2_ranks$", r"^strategy_.*[.]3_ranks$"]),
}

OPERATORS = {" + ": " - ", " - ": " + ", " * ": " / ", " / ": " * ", " += ": " -= ", " -= ": " += ",
             " < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == "}
OPERATOR = re.compile("(?= (?:[-+]=?|[*/]|[<>]=?|[=!]=) )")
NUMBER = re.compile(r"(?<![\w.'\"])\d+(?![\w.'\"])")
STATEMENT = re.compile(r"^\s+(?!(?:return|co_return|const|constexpr|auto|using|throw|break|continue|case|default|static|if|for|while|else|delete)\b)"
                       r"(?:co_await )?[\w:.>\[\]-]+(?:\(.*\)| [-+*/|&]?= .*);$")
LEFT_ALONE = re.compile(r"^\s*(?:#|//|///|\*)|Error|static_assert|throw |printable|\bnote|\bwarn|template|operator|\.name =|\.help =")
HIDDEN = re.compile(r"//.*$|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])+'")


@dataclass(frozen=True)
class Mutation:
    path: str
    line: int  # from 1
    before: str
    after: str

    def text(self) -> str:
        return f"{self.path}:{self.line}\n  - {self.before.strip()}\n  + {self.after.strip() or '(nothing)'}"


def mutations_of(path: str, text: str) -> list[Mutation]:
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        if LEFT_ALONE.search(line):
            continue
        visible = HIDDEN.sub(lambda match: "\0" * len(match[0]), line)  # in the same places

        def add(begin: int, end: int, new: str) -> None:
            found.append(Mutation(path, number, line, line[:begin] + new + line[end:]))

        for match in OPERATOR.finditer(visible):
            token = next(each for each in sorted(OPERATORS, key=len, reverse=True) if visible.startswith(each, match.start()))
            add(match.start(), match.start() + len(token), OPERATORS[token])
        for match in NUMBER.finditer(visible):
            add(match.start(), match.end(), str(int(match[0]) + 1))
        begins = number == 1 or lines[number - 2].rstrip().endswith((";", "{", "}", ":")) or not lines[number - 2].strip()
        if begins and STATEMENT.match(visible.rstrip("\0 ")):
            add(0, len(line), "")
    return found


def all_mutations(only: str) -> list[Mutation]:
    found = []
    for folder in COVERED:
        for file in sorted((ROOT / folder).rglob("*.[ch]pp")):
            path = file.relative_to(ROOT).as_posix()
            if fnmatch.fnmatch(path, only):
                found += mutations_of(path, file.read_text())
    return found


def covering(path: str) -> tuple[str, list[str]]:
    return next(tests for folder, tests in COVERED.items() if path.startswith(folder + "/"))


def copy_tree() -> None:
    """Files that changed alone, so that little is built anew."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        source, target = ROOT / name, COPY / "tree" / name
        if source.is_file() and (not target.exists() or target.read_bytes() != source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            target.touch()


def bound_process() -> None:
    """A mutation may ask for all memory, or crash again and again."""
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command: list[str], limit: float | None = None) -> bool:
    """Whether it succeeds, within `limit` seconds; everything that it started ends with it."""
    with open(COPY / "log", "w") as log:
        process = subprocess.Popen(command, cwd=COPY, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=bound_process)
        try:
            return process.wait(limit) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def build(targets: str, jobs: int) -> bool:
    return run(["cmake", "--build", "build", "-j", str(jobs), "--target", *targets.split()])


def tests_pass(tests: list[str], jobs: int, limit: float | None = None) -> bool:
    begin = time.monotonic()
    for each in tests:
        left = None if limit is None else max(0.0, limit - (time.monotonic() - begin))
        if not run(["ctest", "--test-dir", "build", "-R", each, "-j", str(jobs), "--stop-on-failure", "--no-tests=error"], left):
            return False
    return True


def prepare(targets: set[str], jobs: int) -> bool:
    copy_tree()
    return run(["cmake", "-G", "Ninja", "-S", "tree", "-B", "build", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
                "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=8", "-DRONDA_BUILD_APPS=OFF"]) and all(build(each, jobs) for each in sorted(targets))


def attempt(mutation: Mutation, jobs: int, limit: float) -> str:
    """`killed`, `survived`, or `not compiled`."""
    file = COPY / "tree" / mutation.path
    target, tests = covering(mutation.path)
    sound = file.read_text()
    lines = sound.splitlines()
    lines[mutation.line - 1] = mutation.after
    file.write_text("\n".join(lines) + "\n")
    try:
        if not build(target, jobs):
            return "not compiled"
        return "survived" if tests_pass(tests, jobs, limit) else "killed"
    finally:
        file.write_text(sound)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="mutations that compile (20)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the choice of mutations (the time)")
    parser.add_argument("--only", default="*", metavar="GLOB", help="of paths, such as '*/ring.cpp'")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that build and test (one per processor)")
    arguments = parser.parse_args()
    candidates = all_mutations(arguments.only)
    random.Random(arguments.seed).shuffle(candidates)
    print(f"{len(candidates)} mutations, seed {arguments.seed}", flush=True)
    if not candidates:
        return 1
    COPY.mkdir(parents=True, exist_ok=True)
    covered = {covering(each.path)[0]: covering(each.path)[1] for each in candidates}
    limits = {}
    if not prepare(set(covered), arguments.jobs):
        print(f"the copy does not build: {COPY}/log")
        return 1
    for target, tests in covered.items():
        begin = time.monotonic()
        if not tests_pass(tests, arguments.jobs):
            print(f"the tests of {target} fail without a mutation: {COPY}/log")
            return 1
        limits[target] = 3 * (time.monotonic() - begin) + 30  # what takes longer hangs
    outcomes = {"killed": 0, "survived": 0, "not compiled": 0}
    for mutation in candidates:
        if outcomes["killed"] + outcomes["survived"] == arguments.count:
            break
        outcome = attempt(mutation, arguments.jobs, limits[covering(mutation.path)[0]])
        outcomes[outcome] += 1
        print(f"{outcome}: {mutation.text()}", flush=True)
    print(", ".join(f"{number} {outcome}" for outcome, number in outcomes.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
