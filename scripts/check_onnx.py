#!/usr/bin/env python3
"""Compares onnxruntime's outputs of exported models with Ronda's own, on the same inputs. Run it by check_onnx.sh.

Each application trains for some steps on small data that is made here, or shipped. What it saves is exported by
ronda_export and computed by onnxruntime, and by Ronda from the saved file. The same of a small model of each operation,
without a training. Needs the Python packages onnxruntime and numpy. Exit status: 0 they agree, 1 they do not, 2 wrong
usage or a program is missing.
"""

import argparse
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy
import onnxruntime

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

import colour_images  # noqa: E402
import made_text  # noqa: E402

# Of the difference of any two outputs, relative to the largest output of the model: an output is a sum of products, each
# rounded to 6e-8 of its size, and a small output is often the difference of large ones. An error relative to itself
# has no bound.
TOLERANCE = 1e-5
SAMPLES = 6


def png(path, colour, draw, size=80):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = lambda: b"\0" + bytes(min(255, c // 2 + draw.randrange(128)) for _ in range(size) for c in colour)
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(row() for _ in range(size)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


def make_data(folder):
    draw = random.Random(3)
    colour_images.make(folder / "cifar", in_a_file=40, tests=20)
    made_text.make(folder / "text")
    for part, count in (("train", 8), ("val", 2)):
        for name, colour in (("red", (255, 40, 40)), ("blue", (30, 30, 255))):
            for i in range(count):
                png(folder / "pictures" / part / name / f"{i}.png", colour, draw)
    rows = ["a,b,c,y"]
    for _ in range(300):
        a, b, c = draw.random(), 10 * draw.random(), draw.gauss(0, 3)
        rows.append(f"{a},{b},{c},{100 + 20 * a - b + c * c}")
    (folder / "table.csv").write_text("\n".join(rows) + "\n")


def pixels(numbers, shape):
    return numbers.random(shape, numpy.float32)


def normal(numbers, shape):
    return numbers.standard_normal(shape, numpy.float32)


def tokens(below):
    def make(numbers, shape):
        made = numbers.integers(0, below, shape, numpy.int32)
        made[0], made[1, shape[1] // 2 :] = 0, 0  # padding alone, and behind
        return made

    return make


def applications(folder):
    """Name, options of the training, and what makes inputs."""
    slowly = ["--optimizer", "adam", "--learning-rate", 0.001, "--schedule", "constant"]  # whatever the batch is
    cifar = ["--data", folder / "cifar", "--global-batch-size", 20, "--steps", 20, *slowly]
    table = ["--data", folder / "table.csv", "--test", folder / "table.csv", "--target", "y", "--epochs", 5]
    pictures = ["--data", folder / "pictures", "--global-batch-size", 8, "--steps", 4, *slowly]
    text = ["--data", folder / "text", "--steps", 40, "--context", 32, "--layers", 4, "--heads", 4, "--width", 64]
    return [
        ("mnist_softmax", ["--steps", 200], pixels),
        ("mnist_mlp", ["--steps", 200], pixels),
        ("mnist_cnn", ["--steps", 60], pixels),
        ("mnist_resnet", ["--steps", 40], pixels),
        ("cifar10_cnn", cifar, normal),
        ("cifar10_resnet", cifar, normal),
        ("imagenet_resnet50", pictures, normal),
        ("tabular", table, normal),
        ("text_classifier", ["--steps", 200], tokens(65536)),
        ("char_gpt", text, tokens(256)),
    ]


def run(*words):
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run([str(word) for word in words], env=os.environ | as_root, stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit(f"check_onnx.py: status {done.returncode} of {' '.join(map(str, words))}")


def channels_first(array):
    """Images (N, H, W, C) as ONNX has them."""
    is_image = array.ndim == 4 and array.dtype == numpy.float32
    return numpy.ascontiguousarray(array.transpose(0, 3, 1, 2)) if is_image else array


def channels_last_shape(value):
    shape = value.shape[1:]
    is_image = len(shape) == 3 and value.type == "tensor(float)"
    return (*shape[1:], shape[0]) if is_image else tuple(shape)


class Comparison:
    """Prints what is compared, and remembers whether all agreed."""

    def __init__(self):
        self.failed = 0

    def of(self, name, session, inputs, expected):
        expected = channels_first(expected)
        found = session.run(None, inputs)[0]
        last = session.run(None, {field: values[-1:] for field, values in inputs.items()})[0]  # N is any number
        same_shape = found.shape == expected.shape and last.shape == expected[-1:].shape
        largest = numpy.abs(expected).max()
        difference = numpy.inf
        if same_shape:
            difference = max(numpy.abs(found - expected).max(), numpy.abs(last - expected[-1:]).max())
        good = difference <= TOLERANCE * largest  # false for NaN
        self.failed += not good
        shape = " x ".join(map(str, expected.shape))
        print(
            f"{'ok    ' if good else 'FAILED'} {name:<24} outputs {shape:<14} largest {largest:9.3g}"
            f"  difference {difference:8.2e}  relative {difference / largest:8.2e}",
            flush=True,
        )


def session_of(file):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def check_application(comparison, build, folder, name, options, make_inputs):
    saved, exported = folder / f"{name}.safetensors", folder / f"{name}.onnx"
    run(build / "apps" / name, *options, "--quiet", "--save", saved)
    run(build / "apps" / "ronda_export", saved, "--onnx", exported)
    session = session_of(exported)
    (value,) = session.get_inputs()
    assert value.shape[0] == "N" and [output.name for output in session.get_outputs()] == ["output"]
    inputs = make_inputs(numpy.random.default_rng(1), (SAMPLES, *channels_last_shape(value)))
    numpy.save(folder / "inputs.npy", inputs)
    run(build / "test/onnx/onnx_outputs", saved, folder / "inputs.npy", folder / "outputs.npy")
    comparison.of(name, session, {value.name: channels_first(inputs)}, numpy.load(folder / "outputs.npy"))


def check_operations(comparison, build, folder):
    folder.mkdir()
    run(build / "test/onnx/onnx_outputs", "--operations", folder)
    for file in sorted(folder.glob("*.onnx")):
        session = session_of(file)
        load = lambda value: numpy.load(folder / f"{file.stem}.{value}.npy")
        inputs = {value.name: channels_first(load(value.name)) for value in session.get_inputs()}
        comparison.of(file.stem, session, inputs, load("output"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, metavar="BUILD_DIR", help="has our programs, with tests")
    parser.add_argument("only", nargs="*", metavar="APPLICATION", help="these alone; 'operations' are those")
    options = parser.parse_args()
    if not (options.build / "test/onnx/onnx_outputs").exists():
        print(f"check_onnx.py: {options.build}/test/onnx/onnx_outputs is missing; build it first", file=sys.stderr)
        return 2
    comparison = Comparison()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        make_data(folder)
        print(f"onnxruntime {onnxruntime.__version__} beside Ronda; at most {TOLERANCE:g} of the largest output apart")
        for name, words, make_inputs in applications(folder):
            if not options.only or name in options.only:
                check_application(comparison, options.build, folder, name, words, make_inputs)
        if not options.only or "operations" in options.only:
            check_operations(comparison, options.build, folder / "operations")
    print(f"{comparison.failed} models FAILED" if comparison.failed else "all agree")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())
