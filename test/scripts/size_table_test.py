#!/usr/bin/env python3
"""scripts/size_table.py counts a small tree as it is, and its change since a tag or since VERSION."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
if shutil.which("git") is None:
    print("skipped: there is no git")
    sys.exit(77)


def run(*command: str) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(text: str) -> None:
    run("git", "add", "-A")
    run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", text)


def write(path: str, lines: int) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x\n" * lines)


def rows() -> dict[str, list[int]]:
    global first
    first, _, *table = run("python3", "scripts/size_table.py").splitlines()
    return {line.split()[0]: [int(number) for number in line.split()[1:]] for line in table}


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    run("git", "init", "-q")
    (folder / "docs").mkdir()
    (folder / "scripts").mkdir()
    (folder / "cmake").mkdir()
    (folder / "cmake/public_headers.txt").write_text("# public\ncore/shape.hpp\ncore/layout.hpp detail\n")
    shutil.copy(ROOT / "scripts/size_table.py", folder / "scripts")
    (folder / "docs/architecture.md").write_text("| room | knows |\n|---|---|\n| `core` | shapes |\n| `bindings/c` | C |\n")
    write("core/shape.hpp", 39)
    write("core/layout.hpp", 1)
    write("core/detail/inner.hpp", 40)
    write("core/notes.md", 100)  # no source
    write("bindings/c/handle.hpp", 3)
    write("ronda.h", 5)
    write("test/core/shape_test.cpp", 10)
    commit("all")
    table = rows()
    assert first.startswith("nothing to compare"), first
    assert table["core"] == [80, 3, 2, 1], table
    assert table["bindings/c"] == [8, 2, 2, 1], table
    assert table["test/core"] == [10, 1, 1, 0], table

    write("VERSION", 1)
    commit("a version")
    write("core/shape.hpp", 30)
    write("test/core/other_test.cpp", 7)
    (folder / "bindings/c/handle.hpp").unlink()
    commit("changes")
    table = rows()
    assert table["core"] == [71, 3, 2, 1, -9, 0], table
    assert table["test/core"] == [17, 2, 2, 0, 7, 1], table
    assert table["bindings/c"] == [5, 1, 1, 1, -3, -1], table

    run("git", "tag", "v1")
    table = rows()
    assert "v1" in first, first
    assert table["core"][-2:] == [0, 0], table
    assert table["all"][-2:] == [0, 0], table
print("sizes and changes are as made")
