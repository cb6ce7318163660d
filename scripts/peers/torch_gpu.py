#!/usr/bin/env python3
"""PyTorch on one GPU: trains the applications' models on MNIST that lies in the GPU's memory, in each way of running that
is tried, and prints a JSON line for each. On the CPU, where there is no GPU, as a trial of the program."""

import argparse
import json
import sys
import time

import mnist
import torch
import torch_models
from measure import DATA, LEARNING_RATE, MOMENTUM
from torch.nn import functional

VARIANTS = ["eager", "graph", "compiled", "compiled with graphs"]
DTYPES = ["float32", "tf32", "mixed_bfloat16", "mixed_float16"]
WARM_UP_STEPS = 20


class Training:
    """A step on a batch that is gathered on the device, where the data lies (ours comes from the host in each step); `run`
    does one."""

    def __init__(self, device, data, workload, batch, dtype, variant):
        self.images, self.labels = data
        self.device, self.batch = device, batch
        for setting in (torch.backends.cuda.matmul, torch.backends.cudnn):
            setting.allow_tf32 = dtype == "tf32"
        torch.backends.cudnn.benchmark = True
        half = {"mixed_bfloat16": torch.bfloat16, "mixed_float16": torch.float16}.get(dtype)
        self.autocast = lambda: torch.autocast(device.type, half, enabled=half is not None, cache_enabled=False)
        self.scaler = torch.amp.GradScaler(device.type, enabled=half == torch.float16)
        format_ = torch.channels_last if workload == "cnn" else torch.contiguous_format
        self.model = torch_models.build(workload).to(device, memory_format=format_)
        if variant.startswith("compiled"):
            self.model = torch.compile(self.model, mode="reduce-overhead" if "graphs" in variant else "default")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM, fused=True)
        self.indices = torch.empty(batch, dtype=torch.int64, device=device)
        self.order, self.at = None, 0
        self.run = self._replay(variant) if variant == "graph" else self._eager

    def _next(self):
        if self.order is None or self.at + self.batch > len(self.order):
            self.order, self.at = torch.randperm(len(self.labels), device=self.device), 0
        self.indices.copy_(self.order[self.at : self.at + self.batch])
        self.at += self.batch

    def _step(self):
        images = self.images.index_select(0, self.indices)
        labels = self.labels.index_select(0, self.indices)
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            loss = functional.cross_entropy(self.model(images), labels)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    def _eager(self):
        self._next()
        return self._step()

    def _replay(self, variant):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                self._eager()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = self._step()

        def run():
            self._next()
            graph.replay()
            return loss

        return run


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def measure(training, device, seconds):
    """Steps a second: the best of three measurements of a third of the time each."""
    for _ in range(WARM_UP_STEPS):
        loss = training.run()
    synchronize(device)
    best, steps = 0.0, 10
    for _ in range(3):
        while True:
            begin = time.perf_counter()
            for _ in range(steps):
                loss = training.run()
            synchronize(device)
            taken = time.perf_counter() - begin
            if taken > seconds / 6:
                break
            steps *= 2
        best = max(best, steps / taken)
    return best, float(loss.detach())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", choices=["mlp", "cnn", "mlp4096"], default="mlp")
    parser.add_argument("--batches", default="64,4096")
    parser.add_argument("--dtypes", default="float32", help=", ".join(DTYPES))
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--seconds", type=float, default=1.5, help="of each measurement")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--data", default=DATA)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("PyTorch sees no GPU here", file=sys.stderr)
        return 77
    device = torch.device(options.device)
    images, labels = mnist.read(options.data, "train")
    format_ = torch.channels_last if options.workload == "cnn" else torch.contiguous_format
    images = torch.from_numpy(images).unsqueeze(1).to(device, memory_format=format_)
    data = images, torch.from_numpy(labels).to(device)
    for dtype in options.dtypes.split(","):
        for variant in options.variants.split(","):  # those that take long to begin come last
            for batch in map(int, options.batches.split(",")):
                line = {"program": "PyTorch", "version": torch.__version__, "workload": options.workload, "batch": batch}
                line |= {"dtype": dtype, "variant": variant, "device": options.device}
                try:
                    torch.manual_seed(1)
                    training = Training(device, data, options.workload, batch, dtype, variant)
                    steps, line["loss"] = measure(training, device, options.seconds)
                    line["samples_per_second"] = steps * batch
                except Exception as error:  # this way of running does not work here; the others may
                    line["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
                print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
