#!/usr/bin/env python3
"""Prints the size of each room and each room of tests: lines, files, files under 40 lines, and public headers; with the
change since the last tag, or else since the commit that first has a file VERSION.

    scripts/size_table.py [BASE]     BASE: a commit to compare with

Public headers are those that cmake/public_headers.txt lists, without `detail`. Files are those in git's index that are sources (C++, C, CUDA,
Python, shell). Rooms are those of the table in docs/architecture.md, apps, scripts, and the folders of test/."""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = (".hpp", ".cpp", ".h", ".c", ".cu", ".cuh", ".py", ".sh")
SHORT = 40  # lines
INTERFACES_OF_C = {"ronda.h": "bindings/c", "ronda_kv.h": "bindings/c"}  # at the root of the tree, where users include them from
PUBLIC_HEADERS = "cmake/public_headers.txt"


class Size:
    def __init__(self):
        self.lines = self.files = self.short = self.public = self.more_lines = self.more_files = 0

    def __iadd__(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)
        return self


def git(*arguments: str) -> str:
    """Its output; empty where git fails, as outside of a repository."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False).stdout


def rooms() -> list[str]:
    page = (ROOT / "docs/architecture.md").read_text()
    return re.findall(r"^\| `([\w/]+)` \|", page, re.M) + ["apps", "scripts"]


def room_of(path: str, names: list[str]) -> str | None:
    if path in INTERFACES_OF_C:
        return INTERFACES_OF_C[path]
    if path.startswith("test/"):
        return "/".join(path.split("/")[:2]) if path.count("/") > 1 else "test"
    return next((name for name in names if path.startswith(name + "/")), None)


def public_headers() -> set[str]:
    """Without those that are installed only because public ones include them."""
    lines = (ROOT / PUBLIC_HEADERS).read_text().splitlines()
    return {line for line in lines if re.fullmatch(r"[\w/]+\.hpp", line)} | set(INTERFACES_OF_C)


def is_source(path: str) -> bool:
    return path.endswith(SOURCES)


def base() -> str | None:
    tag = git("describe", "--tags", "--abbrev=0").strip()
    first = git("log", "--diff-filter=A", "--format=%h", "--reverse", "--", "VERSION").split()
    return tag or (first[0] if first else None)


def sizes(names: list[str]) -> dict[str, Size]:
    table, public = collections.defaultdict(Size), public_headers()
    for path in filter(is_source, git("ls-files").splitlines()):
        room, file = room_of(path, names), ROOT / path
        if room is None or not file.is_file():
            continue
        lines = file.read_bytes().count(b"\n")
        size = table[room]
        size.lines += lines
        size.files += 1
        size.short += lines < SHORT
        size.public += path in public
    return table


def add_changes(table: dict[str, Size], names: list[str], commit: str) -> None:
    for line in git("diff", "--raw", "--numstat", "--no-renames", commit).splitlines():
        *fields, path = line.split("\t")
        room = room_of(path, names)
        if room is None or not is_source(path):
            continue
        if line.startswith(":"):
            table[room].more_files += {"A": 1, "D": -1}.get(fields[0][-1], 0)
        elif fields[0] != "-":  # no text
            table[room].more_lines += int(fields[0]) - int(fields[1])


def print_table(table: dict[str, Size], names: list[str], compared: bool) -> None:
    print(f"{'room':20}{'lines':>8}{'files':>7}{'< ' + str(SHORT):>6}{'public':>8}" + (f"{'lines':>12}{'files':>7}" if compared else ""))
    ordered = [name for name in names if name in table] + sorted(name for name in table if name not in names)
    total = Size()
    for name in ordered:
        total += table[name]
    for name, size in [*((name, table[name]) for name in ordered), ("all", total)]:
        row = f"{name:20}{size.lines:8}{size.files:7}{size.short:6}{size.public:8}"
        print(row + (f"{size.more_lines:+12}{size.more_files:+7}" if compared else ""))


def main() -> int:
    if len(sys.argv) > 2 or sys.argv[-1] in ("-h", "--help"):
        print(__doc__)
        return 0 if "-h" in sys.argv[-1] else 2
    names = rooms()
    commit = sys.argv[1] if len(sys.argv) == 2 else base()
    if commit and not git("rev-parse", "--verify", "--quiet", commit + "^{commit}"):
        print(f"{commit} is no commit of this repository", file=sys.stderr)
        return 2
    table = sizes(names)
    if not table:
        print("no sources: this is no clone of git", file=sys.stderr)
        return 2
    if commit:
        add_changes(table, names, commit)
        print(f"the two columns on the right: the change since {commit}, {git('log', '-1', '--format=%as', commit).strip()}")
    else:
        print("nothing to compare with: there is no tag, and no commit that has VERSION")
    print_table(table, names, commit is not None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
