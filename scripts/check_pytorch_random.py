#!/usr/bin/env python3
"""Trains random models in Ronda and in PyTorch, and compares losses, parameters and outputs.

    check_pytorch_random.py PROGRAM [--models N] [--seed N] [--keep DIR]

PROGRAM is test/trainer/random_models. The reference is PyTorch in float64. The distance explained by rounding is the largest of: PyTorch
in float32, and PyTorch in float64 from parameters and inputs that differ by a rounding of float32 (so a ReLU's input near 0, which may
fall on either side, is no error). Ronda may be FACTOR times as far. A model that is farther is reduced while it stays so, and is
printed with its seed. Exit status: 0 all agree, 1 some do not, 2 wrong usage, 77 PyTorch is not installed.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy
    import torch
    from safetensors.torch import load_file, save_file
    from torch import nn
except ImportError as error:
    print(f"check_pytorch_random.py: skipped: {error}")
    sys.exit(77)

FACTOR = 20  # Ronda's orders of summation and algorithms (Winograd, Strassen) differ from PyTorch's
FLOOR = 1e-6  # relative to a tensor's norm: a few roundings, in case PyTorch happens to make none
NEIGHBOURS = 6  # runs of float64 from nearby numbers
AT_ONCE = 20  # models in one process of Ronda
NO_MODEL = (ValueError, RuntimeError, IndexError, AssertionError)  # PyTorch's errors: an empty image, heads that do not divide
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU, "silu": nn.SiLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}


# PyTorch's layers, on Ronda's order of axes: (N, H, W, C) and (N, T, C).


class ChannelsLast(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x.movedim(-1, 1)).movedim(1, -1)


class Rows(nn.Module):
    """BatchNorm over all axes except the last."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x.flatten(0, -2)).view(x.shape)


class Flatten(nn.Module):
    def forward(self, x):
        return x.movedim(-1, 1).flatten(1) if x.dim() == 4 else x.flatten(1)


class GlobalAverage(nn.Module):
    def forward(self, x):
        return x.mean(tuple(range(1, x.dim() - 1)), keepdim=True)


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.inner, self.causal = nn.MultiheadAttention(width, heads, batch_first=True), causal

    def forward(self, x):
        steps = x.shape[1]
        mask = torch.triu(torch.ones(steps, steps, dtype=torch.bool), 1) if self.causal else None
        return self.inner(x, x, x, attn_mask=mask, need_weights=False)[0]


class Two(nn.Module):
    """A residual's sum, or a concatenation."""

    def __init__(self, first, second, combine):
        super().__init__()
        self.first, self.second, self.combine = first, second, combine

    def forward(self, x):
        return self.combine(self.first(x), self.second(x))


def windows(size, kernel, stride=1, padding=0, dilation=1):
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


class Model:
    """A description as a module; `named`: the module that holds the parameters of each of Ronda's names."""

    def __init__(self, description):
        self.counts, self.named = {}, {}
        self.shape = list(description["input"])
        self.module = self.sequence(description["layers"])

    def name(self, kind, module):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.named[f"{kind}{self.counts[kind]}"] = module
        return module

    def sequence(self, layers):
        return nn.Sequential(*(self.layer(layer) for layer in layers))

    def layer(self, d):
        kind, channels = d["kind"], self.shape[-1]
        if kind in ACTIVATIONS:
            return ACTIVATIONS[kind]()
        if kind == "dense":
            self.shape[-1] = d["outputs"]
            return self.name("dense", nn.Linear(channels, d["outputs"], d["bias"]))
        if kind in ("conv2d", "conv1d"):
            make = nn.Conv2d if kind == "conv2d" else nn.Conv1d
            inner = make(channels, d["outputs"], d["kernel"], d["stride"], d["padding"], d["dilation"], d["groups"], d["bias"])
            self.resize(d)
            self.shape[-1] = d["outputs"]
            return ChannelsLast(self.name("conv", inner))
        if kind in ("max_pool2d", "average_pool2d"):
            make = nn.MaxPool2d if kind == "max_pool2d" else nn.AvgPool2d
            self.resize(d)
            return ChannelsLast(make(d["kernel"], d["stride"], d["padding"]))
        if kind == "global_average_pool":
            self.shape = [1] * (len(self.shape) - 1) + [channels]
            return GlobalAverage()
        if kind == "flatten":
            self.shape = [math.prod(self.shape)]
            return Flatten()
        if kind == "layer_norm":
            return self.name("layer_norm", nn.LayerNorm(channels))
        if kind == "batch_norm":
            return Rows(self.name("batch_norm", nn.BatchNorm1d(channels)))
        if kind == "embedding":
            self.shape.append(d["width"])
            return self.name("embedding", nn.Embedding(d["rows"], d["width"]))
        if kind == "attention":
            attention = Attention(channels, d["heads"], d["causal"])
            self.name("attention", attention.inner)
            return attention
        before = list(self.shape)
        first = self.sequence(d["layers"])
        after, self.shape = self.shape, before
        second = self.sequence(d["shortcut" if kind == "residual" else "beside"])
        if kind == "residual":
            if self.shape != after:
                raise ValueError("the branches differ")
            return Two(first, second, torch.add)
        if self.shape[:-1] != after[:-1]:
            raise ValueError("the branches differ")
        self.shape = [*after[:-1], after[-1] + self.shape[-1]]
        return Two(first, second, lambda a, b: torch.cat([a, b], -1))

    def resize(self, d):
        places = len(self.shape) - 1
        values = [d[key] if isinstance(d.get(key), list) else [d.get(key, default)] * places
                  for key, default in [("kernel", 1), ("stride", 1), ("padding", 0), ("dilation", 1)]]
        self.shape[:-1] = [windows(size, *each) for size, *each in zip(self.shape[:-1], *values)]
        if min(self.shape) < 1:
            raise ValueError("nothing is left of the input")

    def state(self):
        return {f"{name}.{key}": value for name, module in self.named.items() for key, value in module.state_dict().items()}

    def load(self, state):
        for name, module in self.named.items():
            module.load_state_dict({key: state[f"{name}.{key}"] for key in module.state_dict()})


# Random descriptions.


class Draw:
    def __init__(self, seed):
        self.random = numpy.random.default_rng(seed)

    def one(self, *choices):
        return choices[self.random.integers(len(choices))]

    def often(self, share):
        return bool(self.random.random() < share)

    def dense(self, outputs=None):
        return {"kind": "dense", "outputs": outputs or self.one(1, 3, 8, 16, 17, 33, 64, 100), "bias": self.often(0.8)}

    def activation(self):
        return {"kind": self.one("relu", *ACTIVATIONS)}

    def norm(self):
        return [] if self.often(0.5) else [{"kind": self.one("layer_norm", "batch_norm")}]

    def perceptron(self):
        layers = []
        for _ in range(self.one(0, 1, 2, 3)):
            dense = self.dense()
            block = [dense, *self.norm(), self.activation()]
            layers += self.wrapped(block, [self.dense(dense["outputs"])])
        return [self.one(1, 5, 16, 50)], layers

    def wrapped(self, block, other):
        """The block itself, or in a branch parallel to another."""
        kind = self.one("plain", "plain", "plain", "residual", "concat")
        if kind == "plain":
            return block
        return [{"kind": kind, "layers": block, "shortcut" if kind == "residual" else "beside": other}]

    def convolution(self, channels, places):
        outputs, groups = self.one(1, 3, 8, 16, 17, 32), 1
        if self.often(0.2):
            groups = self.one(*[g for g in range(1, channels + 1) if channels % g == 0])
            outputs = groups * self.one(1, 2, 4)
        kernel = [self.one(1, 2, 3, 3, 3, 5) for _ in range(places)] if self.often(0.3) else [self.one(1, 3, 3, 5)] * places
        padding = [self.one(*range(k)) for k in kernel] if self.often(0.6) else [0] * places
        layer = {"kind": f"conv{places}d", "outputs": outputs, "kernel": kernel, "stride": [self.one(1, 1, 1, 2)] * places,
                 "padding": padding, "dilation": [self.one(1, 1, 1, 2)] * places, "groups": groups, "bias": self.often(0.8)}
        return {key: value[0] if places == 1 and isinstance(value, list) else value for key, value in layer.items()}

    def images(self):
        shape = [self.one(5, 8, 12, 16, 19), self.one(5, 8, 12, 16), self.one(1, 3, 8, 16)]
        layers, channels = [], shape[-1]
        for _ in range(self.one(1, 2, 3)):
            convolution = self.convolution(channels, 2)
            layers += [convolution, *self.norm(), *([self.activation()] if self.often(0.8) else [])]
            channels = convolution["outputs"]
            if self.often(0.4):
                kind = self.one("max_pool2d", "max_pool2d", "average_pool2d")
                layers.append({"kind": kind, "kernel": [2, 2], "stride": [self.one(1, 2), 2], "padding": [0, 0]})
            if self.often(0.2):
                layers += self.wrapped([{**self.convolution(channels, 2), "outputs": channels, "kernel": [3, 3], "padding": [1, 1],
                                         "stride": [1, 1], "dilation": [1, 1], "groups": 1}], [self.activation()])
                channels = channels if layers[-1]["kind"] != "concat" else 2 * channels
        return shape, layers + ([{"kind": "global_average_pool"}] if self.often(0.3) else []) + [{"kind": "flatten"}]

    def sequences(self):
        shape = [self.one(3, 9, 16, 23), self.one(4, 8, 16)]
        layers, channels = [], shape[-1]
        for _ in range(self.one(1, 2)):
            if self.often(0.5):
                convolution = self.convolution(channels, 1)
                layers += [convolution, self.activation()]
                channels = convolution["outputs"]
            else:
                layers += [self.dense(16), {"kind": "layer_norm"}, self.activation()]
                channels = 16
            if channels % 4 == 0 and self.often(0.6):
                attention = {"kind": "attention", "heads": self.one(1, 2, 4), "causal": self.often(0.5)}
                layers.append({"kind": "residual", "layers": [{"kind": "layer_norm"}, attention], "shortcut": []})
        return shape, layers + [{"kind": "flatten"}]

    def tokens(self):
        width = self.one(4, 8, 16)
        layers = [{"kind": "embedding", "rows": self.one(5, 50, 257), "width": width}]
        for _ in range(self.one(0, 1, 2)):
            attention = {"kind": "attention", "heads": self.one(1, 2, 4), "causal": self.often(0.5)}
            layers.append({"kind": "residual", "layers": [{"kind": "layer_norm"}, attention], "shortcut": []})
            layers += [self.dense(width), self.activation()]
        return [self.one(1, 5, 16)], layers + [{"kind": "flatten"}]

    def model(self):
        family = self.one(self.perceptron, self.images, self.images, self.sequences, self.tokens)
        shape, layers = family()
        loss = {"kind": self.one("cross_entropy", "cross_entropy", "mse", "l1", "huber", "bce"), "smoothing": self.one(0.0, 0.0, 0.1)}
        optimizer, rate = self.one(("sgd", 0.05), ("momentum", 0.02), ("nesterov", 0.02), ("adam", 0.001), ("adamw", 0.001),
                                   ("rmsprop", 0.001), ("adagrad", 0.01), ("adadelta", 1.0), ("nadam", 0.002))
        return {"input": shape, "layers": [*layers, self.dense(self.one(2, 3, 10))], "loss": loss, "optimizer": optimizer, "rate": rate,
                "weight_decay": self.one(0.0, 0.0, 0.01), "batch": self.one(2, 7, 16), "steps": 3}


# Both sides.


def data_of(description, seed):
    """Parameters, inputs and targets; float32 numbers."""
    torch.manual_seed(seed)
    model = Model(description)
    state = {name: value.clone() for name, value in model.state().items()}
    for name, value in state.items():
        if value.is_floating_point() and "running" not in name and value.dim() == 1:
            value += 0.1 * torch.randn(value.shape)  # biases and norms near 0 and 1
    rows, outputs = description["batch"] * description["steps"], model.shape[-1]
    embedding = description["layers"][0]["kind"] == "embedding"
    x = torch.randint(0, description["layers"][0]["rows"], (rows, *description["input"])) if embedding else torch.randn(
        rows, *description["input"])
    kind = description["loss"]["kind"]
    if kind == "cross_entropy":
        target = torch.randint(0, outputs, (rows,))
    elif kind == "bce":
        target = torch.randint(0, 2, (rows, outputs)).float()
    else:
        target = torch.randn(rows, outputs)
    return state, x, target


def loss_in_pytorch(description, outputs, target):
    functional, loss = nn.functional, description["loss"]
    return {"cross_entropy": lambda: functional.cross_entropy(outputs, target, label_smoothing=loss["smoothing"]),
            "mse": lambda: functional.mse_loss(outputs, target),
            "l1": lambda: functional.l1_loss(outputs, target),
            "huber": lambda: functional.huber_loss(outputs, target),
            "bce": lambda: functional.binary_cross_entropy_with_logits(outputs, target)}[loss["kind"]]()


def optimizer_in_pytorch(description, parameters):
    name, rate, decay = description["optimizer"], description["rate"], description["weight_decay"]
    optim = torch.optim
    make = {"sgd": optim.SGD, "momentum": optim.SGD, "nesterov": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW,
            "rmsprop": optim.RMSprop, "adagrad": optim.Adagrad, "adadelta": optim.Adadelta, "nadam": optim.NAdam}[name]
    more = {"momentum": {"momentum": 0.9}, "nesterov": {"momentum": 0.9, "nesterov": True}}.get(name, {})
    return make(parameters, lr=rate, weight_decay=decay, **more)


def train_in_pytorch(description, data, dtype, noise=None):
    """All numbers of a training by name, in float64: losses, parameters and running values, and the outputs for all samples."""
    state, x, target = data

    def near(values):
        if not values.is_floating_point():
            return values
        values = values.to(dtype)
        return values if noise is None else values * (1 + torch.randn(values.shape, generator=noise, dtype=dtype) * 2.0**-24)

    model = Model(description)
    model.module.to(dtype)
    model.load({name: near(value) for name, value in state.items()})
    x = near(x)
    target = target.to(dtype) if target.is_floating_point() else target
    optimizer = optimizer_in_pytorch(description, model.module.parameters())
    losses = []
    for k in range(description["steps"]):
        batch = slice(k * description["batch"], (k + 1) * description["batch"])
        optimizer.zero_grad()
        loss = loss_in_pytorch(description, model.module(x[batch]), target[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.module.eval()
    with torch.no_grad():
        outputs = model.module(x)
    found = {name: value for name, value in model.state().items() if value.is_floating_point()}
    return {name: value.double() for name, value in {**found, "losses": torch.tensor(losses), "outputs": outputs}.items()}


def write(folder, name, description, data):
    state, x, target = data
    (folder / f"{name}.json").write_text(json.dumps(description))
    save_file({name: value.contiguous() for name, value in state.items()}, folder / f"{name}.init.safetensors")
    save_file({"input": x, "target": target}, folder / f"{name}.safetensors")


def train_in_ronda(program, folder, names):
    """Status and last words of a process that trains the models with these names."""
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "RONDA_CACHE_DIR": str(folder)}
    try:
        done = subprocess.run([program, folder, *names], env=environment, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return "not over in 300 s"
    return "" if done.returncode == 0 else f"status {done.returncode}: {done.stderr.strip()[-300:]}"


def found_in_ronda(folder, name):
    told = json.loads((folder / f"{name}.found.json").read_text())
    if "error" in told:
        return told["error"]
    found = load_file(folder / f"{name}.saved.safetensors")
    outputs = load_file(folder / f"{name}.outputs.safetensors")
    found = {**found, "losses": torch.tensor(told["losses"]), "outputs": next(iter(outputs.values()))}
    return {name: value.double() for name, value in found.items()}


def distance(a, b):
    return ((a - b.view(a.shape)).norm() / max(a.norm().item(), 1e-30)).item()


def judge(description, data, ours):
    """The worst of all numbers, (how many times further than allowed, its name, the distances), or a text that is wrong in itself."""
    if isinstance(ours, str):
        return (math.inf, ours)
    exact = train_in_pytorch(description, data, torch.float64)
    others = [train_in_pytorch(description, data, torch.float32)]
    others += [train_in_pytorch(description, data, torch.float64, torch.Generator().manual_seed(k)) for k in range(NEIGHBOURS)]
    worst = (0.0, "")
    for name, value in exact.items():
        if name not in ours:
            return (math.inf, f"{name} is missing")
        allowed = FACTOR * max(distance(value, other[name]) for other in others) + FLOOR
        far = distance(value, ours[name])
        ratio = far / allowed if math.isfinite(far) else math.inf
        worst = max(worst, (ratio, f"{name}: {far:.1e}, allowed {allowed:.1e}"))
    return worst


def try_model(program, folder, description, seed):
    data = data_of(description, seed)
    write(folder, "alone", description, data)
    (folder / "alone.found.json").unlink(missing_ok=True)
    failure = train_in_ronda(program, folder, ["alone"])
    return judge(description, data, failure or found_in_ronda(folder, "alone"))


def simpler(description):
    """Descriptions with a piece less."""

    def without(layers):
        for k, layer in enumerate(layers):
            yield layers[:k] + layers[k + 1:]
            for inner in ("layers", "shortcut", "beside"):
                if inner in layer:
                    yield layers[:k] + layer[inner] + layers[k + 1:]
                    for less in without(layer[inner]):
                        yield [*layers[:k], {**layer, inner: less}, *layers[k + 1:]]

    for layers in without(description["layers"]):
        if layers:
            yield {**description, "layers": layers}
    for key, value in [("steps", 1), ("batch", 2), ("optimizer", "sgd"), ("weight_decay", 0.0)]:
        if description[key] != value:
            yield {**description, key: value, **({"rate": 0.05} if value == "sgd" else {})}


def shrink(program, folder, description, seed):
    """The smallest description that is found by leaving out one piece after another. It is wrong as the first one is: in a number, or in
    that Ronda refuses it, or ends."""

    def wrong(candidate):
        ratio, _ = try_model(program, folder, candidate, seed)
        return "refused" if math.isinf(ratio) else ratio > 1

    first, smaller = wrong(description), True
    while smaller:
        smaller = False
        for candidate in simpler(description):
            try:
                Model(candidate)
                same = wrong(candidate) == first
            except NO_MODEL:
                continue
            if same:
                description, smaller = candidate, True
                break
    return description


def main():
    parser = argparse.ArgumentParser(description="Compare random models with PyTorch.")
    parser.add_argument("program", type=Path, help="test/trainer/random_models of a build")
    parser.add_argument("--models", type=int, default=300, help="number of models (300)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first model; the others follow (1)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    failed, tried, seed, margin = 0, 0, options.seed, 0.0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        while tried < options.models:
            batch = {}
            while len(batch) < min(AT_ONCE, options.models - tried):
                description = Draw(seed).model()
                try:
                    batch[seed] = description, data_of(description, seed)
                    train_in_pytorch(*batch[seed], torch.float32)
                except NO_MODEL:
                    batch.pop(seed, None)
                seed += 1
            for number, (description, data) in batch.items():
                write(folder, str(number), description, data)
            broken = train_in_ronda(options.program, folder, [str(number) for number in batch])
            for number, (description, data) in batch.items():
                ours = found_in_ronda(folder, str(number)) if (folder / f"{number}.found.json").exists() else broken
                ratio, what = judge(description, data, ours)
                tried += 1
                if ratio <= 1:
                    margin = max(margin, ratio)
                    continue
                failed += 1
                print(f"FAILED seed {number}: {what}")
                smallest = shrink(options.program, folder, description, number)
                print(f"  {try_model(options.program, folder, smallest, number)[1]}\n  {json.dumps(smallest)}", flush=True)
            print(f"{tried} of {options.models} models, {failed} failed; the furthest other is at {margin:.2f} of what is allowed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
