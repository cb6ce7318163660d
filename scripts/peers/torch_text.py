#!/usr/bin/env python3
"""apps/char_gpt in PyTorch with DistributedDataParallel over gloo: trains on a text for so many seconds, with AdamW and a cosine, and
says how many bits a byte of the text's last tenth then takes. Started as

    mpirun -n 2 --bind-to core python scripts/peers/torch_text.py TEXT [--seconds 600] [--bfloat16] [--compile] …

The first steps, which do not train, time a step, and so give the number of steps. Rank 0 prints a line of JSON."""

import argparse
import contextlib
import json
import math
import os
import sys
import time

import measure
import numpy
import torch
from torch import distributed
from torch.nn import functional
from torch_models import Gpt
from torch_training import join_ranks


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    for name, value in (("layers", 4), ("heads", 4), ("width", 128), ("context", 128), ("batch-size", 16)):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N")
    parser.add_argument("--learning-rate", type=float, default=0.002)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--bfloat16", action="store_true", help="autocast")
    parser.add_argument("--compile", action="store_true")
    return parser.parse_args()


def windows(options):
    """Inputs and targets of a training and of its test, as char_gpt has them."""
    text = numpy.fromfile(options.text, dtype=numpy.uint8)
    count = (len(text) - 1) // options.context
    inputs = torch.from_numpy(text[: count * options.context].reshape(count, -1).astype(numpy.int64))
    targets = torch.from_numpy(text[1 : count * options.context + 1].reshape(count, -1).astype(numpy.int64))
    trained = count - int(0.1 * count)
    return (inputs[:trained], targets[:trained]), (inputs[trained:], targets[trained:])


class Run:
    def __init__(self, options):
        self.options = options
        self.training, self.test = windows(options)
        self.plain = Gpt(options.layers, options.heads, options.width, options.context)
        model = torch.nn.parallel.DistributedDataParallel(self.plain, gradient_as_bucket_view=True, static_graph=True)
        self.model = torch.compile(model) if options.compile else model
        self.optimizer = torch.optim.AdamW(self.plain.parameters(), lr=options.learning_rate, fused=True)
        self.batches = self.endless()

    def half(self):
        return torch.autocast("cpu", torch.bfloat16) if self.options.bfloat16 else contextlib.nullcontext()

    def loss(self, model, inputs, targets):
        with self.half():
            logits = model(inputs)
        return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())

    def endless(self):
        draw = torch.Generator().manual_seed(1)
        inputs, targets = self.training
        size = self.options.batch_size * measure.RANKS
        while True:
            order = torch.randperm(len(inputs), generator=draw)
            for begin in range(0, len(order) - size + 1, size):
                mine = order[begin + measure.RANK : begin + size : measure.RANKS]
                yield inputs[mine], targets[mine]

    def step(self, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        self.loss(self.model, *next(self.batches)).backward()
        self.optimizer.step()

    def seconds_a_step(self, steps=30):
        for _ in range(10):
            self.step(0.0)
        begin = time.monotonic()
        for _ in range(steps):
            self.step(0.0)
        slowest = torch.tensor((time.monotonic() - begin) / steps)
        distributed.all_reduce(slowest, distributed.ReduceOp.MAX)
        return slowest.item()

    @torch.no_grad()
    def bits(self):
        self.plain.eval()
        inputs, targets = (part[measure.RANK :: measure.RANKS] for part in self.test)
        sums = torch.zeros(2, dtype=torch.float64)
        for begin in range(0, len(inputs), 64):
            batch = slice(begin, begin + 64)
            count = len(inputs[batch])
            sums += torch.tensor([self.loss(self.plain, inputs[batch], targets[batch]).item() * count, count])
        distributed.all_reduce(sums)
        return (sums[0] / sums[1] / math.log(2)).item()


def main():
    options = arguments()
    join_ranks()
    run = Run(options)
    steps = int(options.seconds / run.seconds_a_step())
    begin = time.monotonic()
    for step in range(steps):
        warm, done = min(1.0, (step + 1) / (0.1 * steps)), max(0.0, (step - 0.1 * steps) / (0.9 * steps))
        run.step(options.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * done)))
        if measure.RANK == 0 and step % max(1, steps // 20) == 0:
            print(f"step {step} of {steps}, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    seconds = time.monotonic() - begin
    bits = run.bits()
    if measure.RANK == 0:
        result = {
            "torch": torch.__version__,
            "seconds": seconds,
            "steps": steps,
            "bytes_per_second": steps * measure.RANKS * options.batch_size * options.context / seconds,
            "bits_per_byte": bits,
        }
        print(json.dumps(result))
    distributed.barrier()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads abort an orderly end now and then


if __name__ == "__main__":
    main()
