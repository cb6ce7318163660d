"""The training loop that the programs with PyTorch share."""

import mnist
import torch
from torch.nn import functional


class Trainer:
    """Trains on this rank's share of the samples: all in memory, shuffled each epoch, a batch being a slice."""

    def __init__(self, model, optimizer, options, rank, ranks, memory_format):
        images, labels = mnist.read(options.data, "train")
        self.images = torch.from_numpy(images[rank::ranks]).unsqueeze(1)
        self.labels = torch.from_numpy(labels[rank::ranks])
        self.model, self.optimizer = model, optimizer
        self.batch_size = options.batch_size
        self.memory_format = memory_format
        self.batches = self._batches()

    def train(self, steps):
        for _ in range(steps):
            images, labels = next(self.batches)
            self.optimizer.zero_grad()
            loss = functional.cross_entropy(self.model(images), labels)
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def _batches(self):
        images, labels = torch.empty_like(self.images), torch.empty_like(self.labels)
        images = images.to(memory_format=self.memory_format)
        while True:
            order = torch.randperm(len(labels))
            torch.index_select(self.images, 0, order, out=images)
            torch.index_select(self.labels, 0, order, out=labels)
            for begin in range(0, len(labels) - self.batch_size + 1, self.batch_size):
                batch = slice(begin, begin + self.batch_size)
                yield images[batch], labels[batch]
