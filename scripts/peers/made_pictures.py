"""Pictures of noise in folders, a subfolder a class: time is all that a network that trains on them can tell."""

import os
import random
import struct
import zlib
from pathlib import Path

DIFFERENT = 16  # files; the others are links to them


def png(draw, height, width):
    """A picture that is stored as it is: it takes no time to read."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + draw.randbytes(3 * width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b"")


def make(folder, classes, height, width, in_a_class=8, seed=5):
    """train/ with so many pictures a class, and val/ with one."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(seed)
    for number in range(DIFFERENT):
        (folder / f"{number}.png").write_bytes(png(draw, height, width))
    for part, count in (("train", in_a_class), ("val", 1)):
        for name in range(classes):
            subfolder = folder / part / f"{name:04}"
            subfolder.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                os.link(folder / f"{(name + number) % DIFFERENT}.png", subfolder / f"{number}.png")
