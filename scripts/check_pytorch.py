#!/usr/bin/env python3
"""Checks our applications against PyTorch: the same losses from the same parameters, and files that both understand.
Small models of layers that no application has, `layers`: the same outputs and gradients.

Needs the Python packages torch and safetensors, and mpirun. Exit status: 0 they agree, 1 they do not, 2 wrong usage or
our applications are missing, 77 PyTorch is not there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))

try:
    import colour_images
    import made_text
    import mnist
    import torch
    import torch_models
    from safetensors.torch import load_file, save_file
    from torch.nn import functional
except ImportError as error:
    print(f"check_pytorch.py: skipped: {error}")
    sys.exit(77)

STEPS = 300  # less than an epoch of MNIST
OUTPUT_TOLERANCE = 1e-5  # of logits, absolute where they are below 1
LAYERS, LAYER_OUTPUTS = "layers", "test/layers/layer_outputs"
LAYER_TOLERANCE = 1e-5  # of outputs and gradients, relative to the largest of a tensor


@dataclass
class Application:
    """What is run, and how long rounding may stay invisible: convolutions amplify it within tens of steps."""

    name: str
    model: str
    learning_rate: float
    close_steps: int
    loss_tolerance: float  # relative, in each of the first close_steps
    batch: int = 128
    steps: int = STEPS
    colour: bool = False  # trains on files in CIFAR-10's format that are made here
    text: bool = False  # trains on a text that is made here


APPLICATIONS = [
    Application("mnist_softmax", "softmax", 0.1, STEPS, 1e-4),
    Application("mnist_mlp", "mlp", 0.1, STEPS, 1e-4),
    Application("mnist_cnn", "cnn", 0.05, 50, 5e-3),
    Application("mnist_resnet", "resnet", 0.1, 50, 5e-3),
    Application("cifar10_cnn", "colour_cnn", 0.05, 30, 1e-3, batch=64, steps=30, colour=True),
    # At a rate of 0.02, PyTorch on one thread and on two is 2e-2 apart after 12 steps.
    Application("cifar10_resnet", "resnet18", 0.001, 30, 1e-3, batch=64, steps=30, colour=True),
    Application("char_gpt", "small_gpt", 0.1, 30, 1e-3, batch=16, steps=30, text=True),
]
LATE_STEPS = slice(199, STEPS)  # steps 200 to 300: the mean of their losses is compared for all
LATE_TOLERANCE = 0.1


class Checks:
    """Prints each comparison and remembers whether all held."""

    def __init__(self):
        self.failed = 0

    def at_most(self, what, found, limit):
        good = found <= limit  # false for NaN
        self.failed += not good
        print(f"  {'ok    ' if good else 'FAILED'} {what}: {found:.3g} (at most {limit:.3g})")

    def equal(self, what, found, expected):
        good = found == expected
        self.failed += not good
        print(f"  {'ok    ' if good else 'FAILED'} {what}" + ("" if good else f": found {found}, expected {expected}"))


def read_samples(reader, place, part):
    samples, labels = (torch.from_numpy(array) for array in reader.read(place, part))
    return samples.unsqueeze(1) if samples.dim() == 3 else samples, labels


def mean_loss(outputs, labels):
    """Of all rows: (N, classes) and (N), or a language model's (N, T, classes) and (N, T)."""
    return functional.cross_entropy(outputs.flatten(0, -2), labels.flatten())


def train_in_pytorch(application, parameters, images, labels):
    """The losses of all steps: plain SGD over the samples in the order of the files."""
    model = torch_models.build(application.model)
    model.load_state_dict(parameters)
    optimizer = torch.optim.SGD(model.parameters(), lr=application.learning_rate)
    losses = []
    for begin in range(0, application.steps * application.batch, application.batch):
        batch = slice(begin, begin + application.batch)
        optimizer.zero_grad()
        loss = mean_loss(model(images[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def train_in_ronda(application, ranks, options, data, files):
    """Runs ours from files/init; leaves metrics, saved parameters, predictions and a summary beside it."""
    command = ["mpirun", "-n", ranks, "--oversubscribe", options.build / "apps" / application.name]
    command += ["--data", data, "--no-shuffle", "--init", files / "init", "--steps", application.steps]
    command += ["--global-batch-size", application.batch, "--optimizer", "sgd"] + ["--no-augment"] * application.colour
    command += ["--schedule", "constant", "--learning-rate", application.learning_rate]
    command += made_text.OPTIONS * application.text
    command += ["--metrics", files / "metrics", "--save", files / "saved", "--predictions", files / "predictions"]
    command += ["--summary-json", files / "summary", "--quiet"]
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run([str(word) for word in command], env=os.environ | as_root, stdout=subprocess.DEVNULL)
    return done.returncode


def of_sequences(shape, **layers):
    """A model of sequences, an input (N, T, C) for it, and the model's output for the input."""
    model = torch_models.nn.Sequential(OrderedDict(layers))
    x = torch.randn(shape, requires_grad=True)
    y = model(x.transpose(1, 2))
    return model, x, y.transpose(1, 2) if y.dim() == 3 else y


def layer_models():
    """As test/layers/layer_outputs.cpp has them."""
    nn = torch_models.nn
    yield "conv1d", *of_sequences(
        (5, 17, 6),
        conv1=nn.Conv1d(6, 8, 4, stride=2, padding=3, groups=2),
        relu=nn.ReLU(),
        conv2=nn.Conv1d(8, 12, 4, padding="same", dilation=2, bias=False),
    )
    yield "conv1d_pooled", *of_sequences(
        (4, 23, 3),
        conv1=nn.Conv1d(3, 32, 3),
        relu=nn.ReLU(),
        max=nn.MaxPool1d(2),
        conv2=nn.Conv1d(32, 16, 5, padding="same"),
        mean=nn.AvgPool1d(3, 2, 1, count_include_pad=False),
        steps_first=StepsFirst(),
        flatten=nn.Flatten(),
        dense1=nn.Linear(5 * 16, 7),
    )
    yield "conv1d_means", *of_sequences(
        (6, 9, 4),
        conv1=nn.Conv1d(4, 16, 5, groups=2),
        mean=nn.AdaptiveAvgPool1d(1),
        flatten=nn.Flatten(),
        dense1=nn.Linear(16, 3),
    )


class StepsFirst(torch_models.nn.Module):
    """(N, C, T) as (N, T, C)."""

    def forward(self, x):
        return x.transpose(1, 2)


def check_layers(checks, options):
    print(LAYERS)
    torch.manual_seed(2)
    with tempfile.TemporaryDirectory() as directory:
        files, expected = Path(directory), {}
        for name, model, x, y in layer_models():
            dy = torch.randn(y.shape)
            y.backward(dy)
            expected[name] = {"output": y, "input.gradient": x.grad}
            expected[name] |= {f"{key}.gradient": parameter.grad for key, parameter in model.named_parameters()}
            given = model.state_dict() | {"input": x.detach(), "output_gradient": dy}
            save_file(given, files / f"{name}.safetensors")
        done = subprocess.run([options.build / LAYER_OUTPUTS, files])
        checks.equal("exit status", done.returncode, 0)
        for name in expected if done.returncode == 0 else []:
            found = load_file(files / f"{name}.found")
            shapes = lambda tensors: {key: tuple(tensor.shape) for key, tensor in tensors.items()}
            checks.equal(f"names and shapes of {name}", shapes(found), shapes(expected[name]))
            if shapes(found) != shapes(expected[name]):
                continue
            difference = max(
                (found[key] - tensor).abs().max() / tensor.abs().max().clamp(min=1) for key, tensor in expected[name].items()
            )
            checks.at_most(f"difference of outputs and gradients of {name}", difference.item(), LAYER_TOLERANCE)


def check_losses(checks, application, expected, files):
    metrics = [json.loads(line) for line in (files / "metrics").read_text().splitlines()]
    steps = [record["step"] for record in metrics]
    all_steps = list(range(1, application.steps + 1))
    checks.equal(f"metrics of steps 1 to {application.steps}", steps, all_steps)
    if steps != all_steps:
        return
    found = torch.tensor([record["loss"] for record in metrics], dtype=torch.float64)
    difference = ((found - expected).abs() / expected)[: application.close_steps].max()
    checks.at_most(
        f"relative difference of the losses, first {application.close_steps} steps", difference, application.loss_tolerance
    )
    if application.steps < STEPS:
        return
    late, expected_late = found[LATE_STEPS].mean(), expected[LATE_STEPS].mean()
    checks.at_most(
        f"relative difference of the mean loss of steps 200 to {STEPS} ({late:.4f}, PyTorch {expected_late:.4f})",
        abs(late - expected_late) / expected_late,
        LATE_TOLERANCE,
    )


def check_files(checks, application, images, labels, files):
    """What we saved means in PyTorch what it means to us."""
    model = torch_models.build(application.model)
    saved = load_file(files / "saved")
    shapes = {name: tuple(tensor.shape) for name, tensor in saved.items()}
    expected_shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    checks.equal("names and shapes of the saved parameters", shapes, expected_shapes)
    if shapes != expected_shapes:
        return
    model.load_state_dict(saved)
    model.eval()
    with torch.no_grad():
        outputs = torch.cat([model(part) for part in images.split(1000)])
    loss = mean_loss(outputs.double(), labels).item()
    accuracy = (outputs.argmax(-1) == labels).double().mean().item()

    summary = json.loads((files / "summary").read_text())
    found_loss, found_accuracy = summary["test_loss"], summary["test_accuracy"]
    checks.at_most(
        f"relative difference of the test loss ({found_loss:.6f}, PyTorch {loss:.6f})", abs(found_loss - loss) / loss, 1e-5
    )
    checks.at_most(
        f"difference of the test accuracy ({found_accuracy:.4f}, PyTorch {accuracy:.4f})",
        abs(found_accuracy - accuracy),
        1.5 / labels.numel(),  # a tie may fall either way
    )
    predictions = load_file(files / "predictions")["outputs"]
    outputs = outputs.flatten(1)  # a row a sample
    checks.equal("shape of the predictions", tuple(predictions.shape), tuple(outputs.shape))
    if predictions.shape == outputs.shape:
        difference = ((predictions - outputs).abs() / outputs.abs().clamp(min=1)).max()
        checks.at_most("difference of the outputs on the test set", difference, OUTPUT_TOLERANCE)


def check(checks, application, options, data, train, test):
    torch.manual_seed(1)
    parameters = torch_models.build(application.model).state_dict()
    expected = train_in_pytorch(application, parameters, *train)
    for ranks in options.ranks:
        print(f"{application.name}, {ranks} rank{'s' if ranks > 1 else ''}")
        with tempfile.TemporaryDirectory() as directory:
            files = Path(directory)
            save_file(parameters, files / "init")
            status = train_in_ronda(application, ranks, options, data, files)
            checks.equal("exit status", status, 0)
            if status == 0:
                check_losses(checks, application, expected, files)
                check_files(checks, application, *test, files)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, metavar="BUILD_DIR", help="has our applications in apps/")
    parser.add_argument("--data", type=Path, default=HERE.parent / "share" / "mnist", metavar="DIR", help="MNIST files")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2], metavar="N", help="numbers of ranks to try")
    names = [application.name for application in APPLICATIONS] + [LAYERS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="APPLICATION")
    return parser.parse_args()


def main():
    options = parse_arguments()
    applications = [application for application in APPLICATIONS if application.name in options.only]
    programs = [f"apps/{application.name}" for application in applications] + [LAYER_OUTPUTS] * (LAYERS in options.only)
    for program in programs:
        if not (options.build / program).exists():
            print(f"check_pytorch.py: {options.build}/{program} is missing; build it first", file=sys.stderr)
            return 2
    checks = Checks()
    if LAYERS in options.only:
        check_layers(checks, options)
    with tempfile.TemporaryDirectory() as made:
        colour_images.make(made, in_a_file=400, tests=500)
        text = Path(made) / "text"
        made_text.make(text)
        for application in applications:
            data, reader = (made, colour_images) if application.colour else (options.data, mnist)
            data, reader = (text, made_text) if application.text else (data, reader)
            train, test = read_samples(reader, data, "train"), read_samples(reader, data, "test")
            check(checks, application, options, data, train, test)
    print(f"PyTorch {torch.__version__}: " + (f"{checks.failed} comparisons FAILED" if checks.failed else "all agree"))
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
