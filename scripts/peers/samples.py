"""The samples of a workload: MNIST, or made-up ones of the true shape, which an application of ours reads from files."""

import random

import colour_images
import made_pictures
from workloads import WORKLOADS

BATCHES = 16  # made up in memory for each rank; they are trained on again and again


def read(options, rank, ranks):
    """This rank's inputs, float32 (N, height, width, channels) or bytes as int64 (N, T), and their labels, int64 (N), or
    (N, T): the bytes that follow."""
    import mnist
    import numpy  # making files takes none

    workload = WORKLOADS[options.workload]
    draw = numpy.random.default_rng(rank)
    count = BATCHES * options.batch_size
    if workload.bytes:
        text = draw.integers(0, 256, count * workload.bytes + 1)
        return tuple(text[first : first + count * workload.bytes].reshape(count, -1) for first in (0, 1))
    if workload.images:
        images = draw.standard_normal((count, *workload.images), numpy.float32)
        return images, draw.integers(0, workload.classes, count)
    images, labels = mnist.read(options.data, "train")
    return images[rank::ranks, ..., None], labels[rank::ranks]


def files(name, mnist_folder, folder):
    """The data for our application; what is made up is made in `folder` unless it is there."""
    workload = WORKLOADS[name]
    if not workload.images and not workload.bytes:
        return mnist_folder
    made = folder / f"made_{name}"
    if made.exists():
        return made
    beginning = made.with_suffix(".part")
    if workload.bytes:
        beginning.write_bytes(random.Random(5).randbytes(1 << 22))
    elif name == "resnet18":
        colour_images.make(beginning, in_a_file=2560)
    else:
        made_pictures.make(beginning, workload.classes, *workload.images[:2])
    return beginning.rename(made)
