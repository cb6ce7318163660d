#!/usr/bin/env python3
"""PyTorch with DistributedDataParallel over gloo."""

import os
import sys

import measure
import torch
import torch_models
from torch import distributed
from torch_training import Trainer, join_ranks


def main():
    options = measure.arguments("torch", __doc__)
    join_ranks()

    memory_format = torch.channels_last if "channels_last" in options.variant else torch.contiguous_format
    model = torch_models.build(options.workload).to(memory_format=memory_format)
    model = torch.nn.parallel.DistributedDataParallel(
        model, gradient_as_bucket_view=True, static_graph=True, forward_sync_buffers=False
    )
    if "compile" in options.variant:
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=measure.LEARNING_RATE, momentum=measure.MOMENTUM, fused=True)
    trainer = Trainer(model, optimizer, options, measure.RANK, measure.RANKS, memory_format)
    measure.report("torch", torch.__version__, options, trainer.train)
    distributed.barrier()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads abort an orderly end now and then: "terminate called without an active exception"


if __name__ == "__main__":
    main()
