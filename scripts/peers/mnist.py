"""Reads the MNIST files (IDX, gzip) into memory."""

import gzip
from pathlib import Path

import numpy

PARTS = {"train": "train", "test": "t10k"}


def read(directory, part):
    """Images as float32 (N, 28, 28), scaled to 0..1, and labels as int64 (N); `part` is train or test."""
    stem = Path(directory) / PARTS[part]
    images = _idx(f"{stem}-images-idx3-ubyte.gz")
    labels = _idx(f"{stem}-labels-idx1-ubyte.gz")
    return images.astype(numpy.float32) / 255, labels.astype(numpy.int64)


def _idx(path):
    """An IDX file: two zero bytes, the type (8: bytes), the number of dimensions, each as a big-endian word, the data."""
    data = gzip.open(path).read()
    if data[:3] != b"\0\0\x08":
        raise ValueError(f"{path}: not an IDX file of bytes")
    dimensions = data[3]
    shape = numpy.frombuffer(data, ">u4", dimensions, 4)
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * dimensions).reshape(shape)
