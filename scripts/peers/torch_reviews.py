#!/usr/bin/env python3
"""apps/text_classifier in PyTorch with DistributedDataParallel over gloo: sparse gradients with SparseAdam, or dense ones
with Adam. Started as `mpirun -n RANKS python scripts/peers/torch_reviews.py`; rank 0 prints a line."""

import argparse
import gzip
import os
import re
import sys
from pathlib import Path

import measure
import torch
from torch import distributed
from torch.nn import functional
from torch_training import join_ranks

DATA = Path(__file__).resolve().parents[2] / "share" / "reviews"
TOKENS, WIDTH, WORDS = 65536, 64, 64
RATE = 0.002
WORD = re.compile(rb"[a-z0-9\x80-\xff]+(?:'[a-z0-9\x80-\xff]+)*")


def hashed(word):
    number = 0xCBF29CE484222325
    for byte in word:
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return 1 + number % (TOKENS - 1)


def read(path):
    """Tokens (N, WORDS), 0 where there is none, and labels (N)."""
    tokens, labels = [], []
    with gzip.open(path) as lines:
        next(lines)
        for line in lines:
            label, text = line.rstrip(b"\r\n").split(b"\t")
            found = [hashed(word) for word in WORD.findall(text.lower())[:WORDS]]
            tokens.append(found + [0] * (WORDS - len(found)))
            labels.append(int(label))
    return torch.tensor(tokens), torch.tensor(labels)


class Classifier(torch.nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.embedding_bag1 = torch.nn.EmbeddingBag(TOKENS, WIDTH, mode="mean", padding_idx=0, sparse=sparse)
        self.dense1 = torch.nn.Linear(WIDTH, 2)

    def forward(self, tokens):
        return self.dense1(self.embedding_bag1(tokens))


class Adams:
    """What the users of sparse gradients write: an optimizer for the table and one for the rest."""

    def __init__(self, model, sparse):
        table, rest = list(model.embedding_bag1.parameters()), list(model.dense1.parameters())
        self.optimizers = (
            [torch.optim.SparseAdam(table, lr=RATE), torch.optim.Adam(rest, lr=RATE, fused=True)]
            if sparse
            else [torch.optim.Adam(table + rest, lr=RATE, fused=True)]
        )

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--variant", choices=["sparse", "dense"], default="sparse", help="gradients of the table")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="samples a rank and step")
    parser.add_argument("--steps", type=int, default=450, metavar="N", help="steps to measure, after the warm-up")
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="train.tsv.gz and test.tsv.gz")
    options = parser.parse_args()
    options.workload = "reviews"
    return options


def batches(options):
    tokens, labels = read(options.data / "train.tsv.gz")
    tokens, labels = tokens[measure.RANK :: measure.RANKS], labels[measure.RANK :: measure.RANKS]
    while True:
        order = torch.randperm(len(labels))
        for begin in range(0, len(labels) - options.batch_size + 1, options.batch_size):
            chosen = order[begin : begin + options.batch_size]
            yield tokens[chosen], labels[chosen]


def main():
    options = arguments()
    join_ranks()
    plain = Classifier(options.variant == "sparse")
    model = torch.nn.parallel.DistributedDataParallel(plain, gradient_as_bucket_view=options.variant == "dense")
    optimizer = Adams(plain, options.variant == "sparse")
    samples = batches(options)

    def train(steps):
        for _ in range(steps):
            tokens, labels = next(samples)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(tokens), labels)
            loss.backward()
            optimizer.step()
        return loss.item()

    measure.report("torch", torch.__version__, options, train, warm_up=10)
    if measure.RANK == 0:
        tokens, labels = read(options.data / "test.tsv.gz")
        with torch.no_grad():
            right = (plain(tokens).argmax(1) == labels).float().mean().item()
        print(f"test accuracy {right:.4f}", file=sys.stderr)
    distributed.barrier()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # gloo's threads abort an orderly end now and then


if __name__ == "__main__":
    main()
