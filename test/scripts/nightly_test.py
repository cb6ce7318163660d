#!/usr/bin/env python3
"""scripts/nightly.sh goes on after a part that fails or is skipped, and its status tells."""
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = {"scripts/test.sh": 0, "scripts/instruction_counts.py": 77, "scripts/check_pytorch_random.sh": 3, "scripts/tidy.sh": 0,
         "scripts/mutate.py": 0, "scripts/attack.sh": 0, "test/beds/walk_readme.py": 0}

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for path, status in PARTS.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\necho runs {path}\nexit {status}\n")
        file.chmod(0o755)
    shutil.copy(ROOT / "scripts/nightly.sh", folder / "scripts")

    def nightly(*parts: str) -> tuple[int, str]:
        done = subprocess.run([folder / "scripts/nightly.sh", *parts], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    status, text = nightly()
    assert status == 1, text
    assert all(f"runs {path}" in text for path in PARTS), text
    times = text[text.index("== times"):]
    assert "s  instructions  skipped" in times and "s  pytorch  FAILED" in times and times.count(" s  ") == len(PARTS), times
    assert nightly("tests", "instructions")[0] == 0
    status, text = nightly("tests", "nothing")
    assert status == 2 and "runs" not in text, text
print("every part runs, and the status tells of a failure")
