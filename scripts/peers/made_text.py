#!/usr/bin/env python3
"""A text of made-up sentences that a model of bytes can learn, and its windows as char_gpt cuts it.

  made_text.py FILE [BYTES]
"""

import random
import sys
from pathlib import Path

CONTEXT, TEST_SPLIT = 16, 0.1
# A byte's width is 32, so that a step takes no time.
OPTIONS = ["--context", CONTEXT, "--layers", 2, "--heads", 2, "--width", 32, "--test-split", TEST_SPLIT]
WORDS = [["the sun", "a cat", "my boat", "old snow"], ["sees", "finds", "warms", "leaves"], ["rain", "the hill", "us", "it"]]


def make(path, size=20000, seed=5):
    draw = random.Random(seed)
    text = ""
    while len(text) < size:
        text += " ".join(draw.choice(words) for words in WORDS) + ".\n"
    Path(path).write_text(text[:size])


def read(path, part):
    """Bytes as int64 (N, CONTEXT), and the bytes behind each; `part` is train or test."""
    import numpy  # writing the file takes none

    text = numpy.frombuffer(Path(path).read_bytes(), numpy.uint8).astype(numpy.int64)
    windows = (len(text) - 1) // CONTEXT
    cut = windows - int(TEST_SPLIT * windows)
    chosen = slice(0, cut) if part == "train" else slice(cut, windows)
    return tuple(text[first : first + windows * CONTEXT].reshape(windows, CONTEXT)[chosen] for first in (0, 1))


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    make(sys.argv[1], *map(int, sys.argv[2:]))
