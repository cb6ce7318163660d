#!/usr/bin/env python3
"""JAX: one process, started without mpirun's others, in which each rank is a device of the host."""

import os
from functools import partial

import measure
import samples
from workloads import WORKLOADS

HIDDEN = {"mlp": [128], "mlp4096": [4096, 4096, 4096]}
OPTIONS = measure.arguments("jax", __doc__)
measure.as_many_cores_as_ranks()
FLAGS = f"--xla_force_host_platform_device_count={measure.RANKS}"
if "one_thread" in OPTIONS.variant:
    FLAGS += " --xla_cpu_multi_thread_eigen=false"
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}"

import jax  # noqa: E402: reads the flags
import numpy  # noqa: E402
from jax import lax  # noqa: E402
from jax import numpy as jnp  # noqa: E402
from jax.sharding import Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402


def main():
    measure.report("jax", jax.__version__, OPTIONS, Trainer(OPTIONS).train)


class Trainer:
    """Trains each rank on its share of the samples: all on its device, shuffled each epoch, a batch being a slice.

    All steps up to the end of an epoch are one call into JAX, or each is one.
    """

    def __init__(self, options):
        mesh = Mesh(jax.devices(), ("ranks",))
        everywhere, by_rank = NamedSharding(mesh, P()), NamedSharding(mesh, P("ranks"))
        shares = [samples.read(options, rank, measure.RANKS) for rank in range(measure.RANKS)]
        count = min(len(labels) for _, labels in shares) // options.batch_size * options.batch_size
        share = zip(*((inputs[:count], labels[:count]) for inputs, labels in shares))
        self.samples = tuple(jax.device_put(narrow(numpy.concatenate(arrays)), by_rank) for arrays in share)
        self.batch_size, self.by_step = options.batch_size, options.variant.startswith("steps")
        self.steps_an_epoch = self.next_step = count // options.batch_size
        self.key = jax.random.key(1)

        self.model = partial(build, options.workload)
        layers = Layers(self.key)
        self.model(layers, narrow(shares[0][0][:1]))
        state = layers.parameters, jax.tree.map(jnp.zeros_like, layers.parameters), layers.averages
        self.state = jax.device_put(state, everywhere)

        over_ranks = partial(jax.shard_map, mesh=mesh, check_vma=False)
        rows = P("ranks"), P("ranks")
        self._shuffle = jax.jit(over_ranks(self._shuffled, in_specs=(rows, P()), out_specs=rows))
        train = over_ranks(self._train, in_specs=(P(), rows, P(), P()), out_specs=(P(), P()))
        self._run = jax.jit(train, donate_argnums=0)

    def train(self, steps):
        while steps > 0:
            if self.next_step == self.steps_an_epoch:
                self.key, key = jax.random.split(self.key)
                self.shuffled, self.next_step = self._shuffle(self.samples, key), 0
            count = 1 if self.by_step else min(steps, self.steps_an_epoch - self.next_step)
            state, loss = self._run(self.state, self.shuffled, self.next_step, count)
            self.state = jax.block_until_ready(state)  # calls under way may wait for each other for ever
            self.next_step += count
            steps -= count
        return float(loss)

    def _shuffled(self, arrays, key):
        key = jax.random.fold_in(key, lax.axis_index("ranks"))
        order = jax.random.permutation(key, len(arrays[1]))
        return tuple(array[order] for array in arrays)

    def _train(self, state, arrays, first, count):
        def step(number, before):
            begin = number * self.batch_size
            batch = [lax.dynamic_slice_in_dim(array, begin, self.batch_size) for array in arrays]
            return self._step(before[0], *batch)

        if self.by_step:  # no loop around the one step
            return step(first, (state, None))
        return lax.fori_loop(first, first + count, step, (state, jnp.float32(0)))

    def _step(self, state, inputs, labels):
        parameters, velocities, _ = state
        differentiate = jax.value_and_grad(partial(self._loss, inputs=inputs, labels=labels), has_aux=True)
        (loss, averages), gradients = differentiate(parameters, state[2])
        gradients = lax.pmean(gradients, "ranks")
        velocities = jax.tree.map(lambda v, g: measure.MOMENTUM * v + g, velocities, gradients)
        parameters = jax.tree.map(lambda p, v: p - measure.LEARNING_RATE * v, parameters, velocities)
        return (parameters, velocities, averages), loss

    def _loss(self, parameters, averages, inputs, labels):
        layers = Layers(None, parameters, averages)
        logits = jax.nn.log_softmax(self.model(layers, inputs))
        return -jnp.take_along_axis(logits, labels[..., None], -1).mean(), layers.new_averages


def narrow(array):
    return array if array.dtype == numpy.float32 else array.astype(numpy.int32)


class Layers:
    """What models call: the first time each layer makes its parameters, later it takes them, in the same order."""

    def __init__(self, key, parameters=None, averages=None):
        self.key, self.given = key, iter(parameters or [])
        self.parameters, self.averages = [], averages or []
        self.old_averages, self.new_averages = iter(self.averages), []

    def parameter(self, shape, limit=0.0, value=0.0):
        if self.key is None:
            return next(self.given)
        self.key, key = jax.random.split(self.key)
        self.parameters.append(value + jax.random.uniform(key, shape, minval=-limit, maxval=limit))
        return self.parameters[-1]

    def dense(self, x, outputs):
        inputs = x.shape[-1]
        weight = self.parameter((inputs, outputs), (6 / (inputs + outputs)) ** 0.5)
        return x @ weight + self.parameter((outputs,))

    def convolution(self, x, channels, kernel, stride=1, padding=0):
        limit = (6 / (kernel**2 * (x.shape[-1] + channels))) ** 0.5
        weight = self.parameter((kernel, kernel, x.shape[-1], channels), limit)
        around = ((padding, padding), (padding, padding))
        return lax.conv_general_dilated(x, weight, (stride, stride), around, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def normalised(self, x, channels, kernel, stride=1):
        """A convolution and its batch normalisation, with the moving averages that tests would use."""
        x = self.convolution(x, channels, kernel, stride, kernel // 2)
        mean, square = x.mean((0, 1, 2)), (x * x).mean((0, 1, 2))
        found = jnp.stack([mean, square - mean * mean])
        if self.key is not None:
            self.averages.append(found)
        else:
            self.new_averages.append(0.9 * next(self.old_averages) + 0.1 * lax.stop_gradient(found))
        factor = self.parameter((channels,), value=1.0) * lax.rsqrt(found[1] + 1e-5)
        return x * factor + (self.parameter((channels,)) - mean * factor)

    def layer_norm(self, x):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        width = x.shape[-1:]
        return (x - mean) * lax.rsqrt(variance + 1e-5) * self.parameter(width, value=1.0) + self.parameter(width)

    def attention(self, x, heads):
        parts = self.dense(x, 3 * x.shape[-1]).reshape(*x.shape[:2], 3, heads, -1)
        y = jax.nn.dot_product_attention(*(parts[:, :, part] for part in range(3)), is_causal=True)
        return self.dense(y.reshape(x.shape), x.shape[-1])


def build(workload, layers, x):
    if workload == "gpt":
        return gpt(layers, x, 6, 6, 384)
    if workload == "resnet18":
        x = jax.nn.relu(layers.normalised(x, 64, 3))
        return residual(layers, x, (2, 2, 2, 2), False, 10)
    if workload == "resnet50":
        x = pool(jax.nn.relu(layers.normalised(x, 64, 7, 2)), 3, 2, 1)
        return residual(layers, x, (3, 4, 6, 3), True, WORKLOADS[workload].classes)
    return convolutional(layers, x) if workload == "cnn" else dense(layers, x, HIDDEN[workload])


def pool(x, size, stride, padding=0):
    around = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, stride, stride, 1), around)


def dense(layers, x, hidden):
    x = x.reshape(len(x), -1)
    for width in hidden:
        x = jax.nn.relu(layers.dense(x, width))
    return layers.dense(x, 10)


def convolutional(layers, x):
    def convolution(x, channels):
        x = layers.convolution(x, channels, 3)
        return jax.nn.relu(x + layers.parameter((channels,)))

    x = pool(convolution(x, 32), 2, 2)
    x = pool(convolution(x, 64), 2, 2)
    return dense(layers, convolution(x, 64), [64])


def residual(layers, x, counts, bottlenecks, classes):
    relu = jax.nn.relu
    for channels, count in zip((64, 128, 256, 512), counts):
        for number in range(count):
            stride = 2 if number == 0 and channels != 64 else 1
            if bottlenecks:
                y = relu(layers.normalised(x, channels, 1))
                y = relu(layers.normalised(y, channels, 3, stride))
                y = layers.normalised(y, 4 * channels, 1)
            else:
                y = relu(layers.normalised(x, channels, 3, stride))
                y = layers.normalised(y, channels, 3)
            x = relu(y + (x if x.shape == y.shape else layers.normalised(x, y.shape[-1], 1, stride)))
    return layers.dense(x.mean((1, 2)), classes)


def gpt(layers, tokens, count, heads, width):
    table = layers.parameter((256, width), 0.1)
    x = table[tokens] + layers.parameter((tokens.shape[1], width), 0.1)
    for _ in range(count):
        x = x + layers.attention(layers.layer_norm(x), heads)
        y = jax.nn.gelu(layers.dense(layers.layer_norm(x), 4 * width), approximate=False)
        x = x + layers.dense(y, width)
    return layers.layer_norm(x) @ table.T


if __name__ == "__main__":
    main()
