#!/usr/bin/env python3
"""scripts/instruction_counts.py fails by name for a change over 2 %, for a path that is new and for one that is gone."""
import contextlib
import io
import os
import pathlib
import subprocess
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))
import instruction_counts

with contextlib.redirect_stdout(io.StringIO()) as printed:
    wrong = instruction_counts.compare({"same": 1000, "more": 1019, "much": 1021, "less": 979, "new": 5},
                                       {"same": 1000, "more": 1000, "much": 1000, "less": 1000, "gone": 7})
assert sorted(wrong) == ["gone", "less", "much", "new"], wrong
assert "+2.10%" in printed.getvalue() and "no such path" in printed.getvalue() and "not recorded" in printed.getvalue(), printed.getvalue()

done = subprocess.run([sys.executable, SCRIPTS / "instruction_counts.py"], env={**os.environ, "PATH": "/nowhere"}, capture_output=True, text=True,
                      check=False)
assert done.returncode == 77 and "no valgrind" in done.stdout, done
print("changes are told by name, and a machine without valgrind is skipped")
