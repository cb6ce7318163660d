#!/usr/bin/env python3
"""Pictures a second that torchvision's loader gives, read as a training of ImageNet reads them: a random part of 224 x 224,
mirrored now and then, normalised, 64 a batch, in random order.

    torch_loader.py make FOLDER PICTURES            pictures of 500 x 375, as JPEG, in two classes
    torch_loader.py time FOLDER VARIANT WORKERS SECONDS     a line of JSON

Variants: `pillow`, ImageFolder's own, and `tensor`, decoded by torchvision and changed as bytes by its newer transforms.
"""

import json
import sys
import time
from pathlib import Path

import numpy
import torch
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2

SIZE, BATCH = 224, 64
MEANS, DEVIATIONS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def make(folder, count):
    """Smooth shapes with some noise, which compress about as photographs do."""
    draw = numpy.random.default_rng(1)
    for number in range(count):
        coarse = Image.fromarray(draw.integers(0, 256, (24, 32, 3), dtype=numpy.uint8))
        smooth = numpy.asarray(coarse.resize((500, 375), Image.Resampling.BICUBIC), dtype=numpy.float32)
        noisy = numpy.clip(smooth + draw.normal(0, 8, smooth.shape), 0, 255).astype(numpy.uint8)
        path = Path(folder) / str(number % 2) / f"{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noisy).save(path, quality=90)


def dataset(folder, variant):
    after = [v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEANS, DEVIATIONS)]
    if variant == "pillow":
        return datasets.ImageFolder(folder, v2.Compose([v2.RandomResizedCrop(SIZE), v2.ToImage(), *after]))
    return datasets.ImageFolder(
        folder,
        v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), *after]),
        loader=lambda path: decode_image(path, ImageReadMode.RGB),
    )


def measure(folder, variant, workers, seconds):
    torch.set_num_threads(1)
    loader = DataLoader(
        dataset(folder, variant), BATCH, shuffle=True, num_workers=workers, persistent_workers=True, prefetch_factor=2
    )
    pictures, begin, end = 0, None, None
    while end is None or end - begin < seconds:
        for images, _ in loader:
            if begin is None:  # the workers have started; what they have ready is little of what is counted
                begin = time.monotonic()
                continue
            pictures += len(images)
            end = time.monotonic()
            if end - begin >= seconds:
                break
    print(json.dumps({"variant": variant, "samples_per_second": pictures / (end - begin)}))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        measure(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
