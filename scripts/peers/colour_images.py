#!/usr/bin/env python3
"""Small colour images in CIFAR-10's binary format, made here: ten classes that a network can tell apart.

  colour_images.py FOLDER [TRAINING_IMAGES_A_FILE [TEST_IMAGES]]
"""

import random
import sys
from pathlib import Path

MEANS, DEVIATIONS = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # as the applications normalise
RECORD = 1 + 3 * 32 * 32


def record(draw, label):
    """Noise, with a bright square in two channels; its place and the channels tell the class."""
    planes = [bytearray(draw.randbytes(1024)) for _ in range(3)]
    row, column = 3 + 5 * (label % 5), 8 + 12 * (label // 5)
    for channel in (label % 3, (label + 1) % 3):
        for y in range(row, row + 6):
            for x in range(column, column + 6):
                planes[channel][32 * y + x] = 200 + draw.randrange(56)
    return bytes([label]) + b"".join(planes)


def make(folder, in_a_file=120, tests=200, seed=5):
    """The five files to train with, and one to test."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    for name, count in [(f"data_batch_{i}.bin", in_a_file) for i in range(1, 6)] + [("test_batch.bin", tests)]:
        (folder / name).write_bytes(b"".join(record(draw, draw.randrange(10)) for _ in range(count)))


def read(folder, part):
    """Images as float32 (N, 3, 32, 32), normalised, and labels as int64 (N); `part` is train or test."""
    import numpy  # writing the files takes none

    names = [f"data_batch_{i}.bin" for i in range(1, 6)] if part == "train" else ["test_batch.bin"]
    records = numpy.concatenate([numpy.fromfile(Path(folder) / name, numpy.uint8).reshape(-1, RECORD) for name in names])
    images = records[:, 1:].reshape(-1, 3, 32, 32).astype(numpy.float32) / 255
    mean, deviation = (numpy.array(numbers, numpy.float32).reshape(3, 1, 1) for numbers in (MEANS, DEVIATIONS))
    return (images - mean) / deviation, records[:, 0].astype(numpy.int64)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    make(sys.argv[1], *map(int, sys.argv[2:]))
