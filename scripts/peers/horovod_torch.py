#!/usr/bin/env python3
"""PyTorch with Horovod over MPI."""

import os

import horovod.torch as hvd
import measure
import torch
import torch_models
from horovod import __version__ as horovod_version
from torch_training import Trainer


def main():
    options = measure.arguments("horovod", __doc__)
    measure.one_core()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    os.environ.setdefault("HOROVOD_CYCLE_TIME", "0.1")  # milliseconds; its default, 1, is long beside these steps
    hvd.init()

    memory_format = torch.channels_last if "channels_last" in options.variant else torch.contiguous_format
    model = torch_models.build(options.workload).to(memory_format=memory_format)
    optimizer = torch.optim.SGD(model.parameters(), lr=measure.LEARNING_RATE, momentum=measure.MOMENTUM, foreach=True)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    if "compile" in options.variant:
        model = torch.compile(model)
    trainer = Trainer(model, optimizer, options, measure.RANK, measure.RANKS, memory_format)
    version = f"{horovod_version}, torch {torch.__version__}"
    measure.report("horovod", version, options, trainer.train)
    hvd.shutdown()


if __name__ == "__main__":
    main()
