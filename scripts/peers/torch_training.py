"""The training loop that the programs with PyTorch share."""

import os

import measure
import samples
import torch
from torch import distributed
from torch.nn import functional


def join_ranks():
    """This rank gets a core and a thread of its own, and joins the others over gloo."""
    measure.one_core()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    address = f"tcp://{measure.ADDRESS}:{measure.PORT}"
    distributed.init_process_group("gloo", init_method=address, rank=measure.RANK, world_size=measure.RANKS)


class Trainer:
    """Trains on this rank's share of the samples: all in memory, shuffled each epoch, a batch being a slice."""

    def __init__(self, model, optimizer, options, rank, ranks, memory_format):
        inputs, labels = (torch.from_numpy(array) for array in samples.read(options, rank, ranks))
        images = inputs.dim() == 4
        self.inputs = inputs.permute(0, 3, 1, 2).contiguous(memory_format=memory_format) if images else inputs
        self.labels = labels
        self.model, self.optimizer = model, optimizer
        self.batch_size = options.batch_size
        self.batches = self._batches()

    def train(self, steps):
        for _ in range(steps):
            inputs, labels = next(self.batches)
            self.optimizer.zero_grad()
            loss = functional.cross_entropy(self.model(inputs).flatten(0, -2), labels.flatten())
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def _batches(self):
        inputs, labels = torch.empty_like(self.inputs), torch.empty_like(self.labels)
        while True:
            order = torch.randperm(len(labels))
            torch.index_select(self.inputs, 0, order, out=inputs)
            torch.index_select(self.labels, 0, order, out=labels)
            for begin in range(0, len(labels) - self.batch_size + 1, self.batch_size):
                batch = slice(begin, begin + self.batch_size)
                yield inputs[batch], labels[batch]
