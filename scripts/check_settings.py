#!/usr/bin/env python3
"""Holds messages to their parts: a field of an options struct is a `setting("one_copy")`, not a piece of a text, where no
application could show it as an option. Texts that say "in a program" mean the field itself."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("core", "data", "layers", "optim", "collectives", "coordinator", "runtime")
ENDINGS = ("jpg", "jpeg", "png", "npy")  # of files

COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')  # with those that follow it at once
FIELD = re.compile(r"(?:(?<=[ (])\.|^\.(?=\w+ ))([a-z]\w+)")


def main() -> int:
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.[ch]*")):
            source = COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), path.read_text())
            for literal in TEXT.finditer(source):
                text = re.sub(r'"\s*"', "", literal.group())[1:-1]
                fields = [field for field in FIELD.findall(text) if field not in ENDINGS]
                if fields and "in a program" not in text:
                    line = source.count("\n", 0, literal.start()) + 1
                    found.append(f'{path.relative_to(ROOT)}:{line}: .{fields[0]}: write setting("{fields[0]}")')
    print("\n".join(found) if found else "messages name fields as settings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
