#!/usr/bin/env python3
"""TensorFlow with MultiWorkerMirroredStrategy, one worker a rank, over its ring collectives (gRPC)."""

import json
import os

import measure
import samples
import tensorflow as tf
from workloads import WORKLOADS

HIDDEN = {"mlp": [128], "mlp4096": [4096, 4096, 4096]}


def main():
    options = measure.arguments("tensorflow", __doc__)
    measure.one_core()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.random.set_seed(1)
    workers = [f"{measure.ADDRESS}:{measure.PORT + rank}" for rank in range(measure.RANKS)]
    task = {"type": "worker", "index": measure.RANK}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": workers}, "task": task})
    ring = tf.distribute.experimental.CommunicationImplementation.RING
    communication = tf.distribute.experimental.CommunicationOptions(implementation=ring)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication)
    trainer = Trainer(strategy, options)
    measure.report("tensorflow", tf.__version__, options, trainer.train)


class Trainer:
    """Trains on this rank's share of the samples: all in memory, shuffled each epoch, a batch being a slice.

    All steps up to the end of an epoch are one call into TensorFlow.
    """

    def __init__(self, strategy, options):
        self.images, self.labels = map(tf.constant, samples.read(options, measure.RANK, measure.RANKS))
        self.batch_size = options.batch_size
        self.steps_an_epoch = len(self.labels) // self.batch_size
        self.next_step = self.steps_an_epoch
        self.strategy = strategy
        self.model = build(options.workload)
        self.parameters = self.model.trainable_variables
        self.velocities = [tf.Variable(tf.zeros_like(parameter)) for parameter in self.parameters]
        self.differentiate = tf.function(self._differentiate, jit_compile=options.variant == "xla")

    def train(self, steps):
        while steps > 0:
            if self.next_step == self.steps_an_epoch:
                self._shuffle()
            count = min(steps, self.steps_an_epoch - self.next_step)
            loss = self._train(self.shuffled_images, self.shuffled_labels, tf.constant(self.next_step), tf.constant(count))
            self.next_step += count
            steps -= count
        return float(loss)

    def _shuffle(self):
        order = tf.random.shuffle(tf.range(len(self.labels)))
        self.shuffled_images = tf.gather(self.images, order)
        self.shuffled_labels = tf.gather(self.labels, order)
        self.next_step = 0

    @tf.function
    def _train(self, images, labels, first, count):
        loss = 0.0
        for step in tf.range(first, first + count):
            begin = step * self.batch_size
            batch = slice(begin, begin + self.batch_size)
            loss = self.strategy.run(self._step, (images[batch], labels[batch]))
        return loss

    def _step(self, images, labels):
        images = tf.ensure_shape(images, [self.batch_size, *self.images.shape[1:]])
        loss, gradients = self.differentiate(images, tf.ensure_shape(labels, [self.batch_size]))
        gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
        for parameter, velocity, gradient in zip(self.parameters, self.velocities, gradients):
            tf.raw_ops.ResourceApplyMomentum(
                var=parameter.handle,
                accum=velocity.handle,
                lr=measure.LEARNING_RATE,
                grad=gradient,
                momentum=measure.MOMENTUM,
            )
        return loss

    def _differentiate(self, images, labels):
        with tf.GradientTape() as tape:
            logits = self.model(images)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        return loss, tape.gradient(loss, self.parameters)


class Dense(tf.Module):
    def __init__(self, inputs, outputs, activation=tf.identity):
        self.weight = glorot([inputs, outputs], inputs, outputs)
        self.bias = tf.Variable(tf.zeros([outputs]))
        self.activation = activation

    def __call__(self, inputs):
        return self.activation(tf.nn.bias_add(inputs @ self.weight, self.bias))


class Convolution(tf.Module):
    """3x3 without padding, and ReLU."""

    def __init__(self, inputs, outputs):
        self.weight = glorot([3, 3, inputs, outputs], 9 * inputs, 9 * outputs)
        self.bias = tf.Variable(tf.zeros([outputs]))

    def __call__(self, inputs):
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(inputs, self.weight, 1, "VALID"), self.bias))


class Normalised(tf.Module):
    """A convolution and its batch normalisation."""

    def __init__(self, inputs, outputs, kernel, stride=1, activation=tf.nn.relu):
        self.weight = glorot([kernel, kernel, inputs, outputs], kernel**2 * inputs, kernel**2 * outputs)
        self.scale, self.offset = tf.Variable(tf.ones([outputs])), tf.Variable(tf.zeros([outputs]))
        self.mean = tf.Variable(tf.zeros([outputs]), trainable=False)
        self.variance = tf.Variable(tf.ones([outputs]), trainable=False)
        self.stride, self.activation = stride, activation

    def __call__(self, inputs):
        outputs = tf.nn.conv2d(inputs, self.weight, self.stride, "SAME")
        outputs, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=outputs, scale=self.scale, offset=self.offset, mean=[], variance=[], epsilon=1e-5
        )
        for average, found in ((self.mean, mean), (self.variance, variance)):
            average.assign(0.9 * average + 0.1 * found)
        return self.activation(outputs)


class Block(tf.Module):
    """Layers beside a shortcut."""

    def __init__(self, main, shortcut):
        self.main, self.shortcut = main, shortcut

    def __call__(self, inputs):
        return tf.nn.relu(self.main(inputs) + self.shortcut(inputs))


class Sequence(tf.Module):
    def __init__(self, *layers):
        self.layers = layers

    def __call__(self, outputs):
        for layer in self.layers:
            outputs = layer(outputs)
        return outputs


def glorot(shape, inputs, outputs):
    """The same on every rank: the seed is fixed."""
    limit = (6 / (inputs + outputs)) ** 0.5
    return tf.Variable(tf.random.stateless_uniform(shape, [1, shape[-1]], -limit, limit))


def flatten(inputs):
    return tf.reshape(inputs, [inputs.shape[0], -1])


def halve(inputs):
    return tf.nn.max_pool2d(inputs, 2, 2, "VALID")


def build(workload):
    if workload == "resnet18":
        return residual([Normalised(3, 64, 3)], basic, (2, 2, 2, 2), 10)
    if workload == "resnet50":
        return residual([Normalised(3, 64, 7, 2), pool], bottleneck, (3, 4, 6, 3), WORKLOADS[workload].classes)
    return convolutional() if workload == "cnn" else dense(HIDDEN[workload])


def dense(hidden):
    widths = [28 * 28, *hidden]
    layers = [Dense(inputs, outputs, tf.nn.relu) for inputs, outputs in zip(widths, widths[1:])]
    return Sequence(flatten, *layers, Dense(widths[-1], 10))


def convolutional():
    return Sequence(
        Convolution(1, 32),
        halve,
        Convolution(32, 64),
        halve,
        Convolution(64, 64),
        flatten,
        Dense(64 * 3 * 3, 64, tf.nn.relu),
        Dense(64, 10),
    )


def pool(inputs):
    return tf.nn.max_pool2d(inputs, 3, 2, "SAME")


def basic(inputs, channels, stride):
    return [Normalised(inputs, channels, 3, stride), Normalised(channels, channels, 3, activation=tf.identity)], channels


def bottleneck(inputs, channels, stride):
    ends = Normalised(inputs, channels, 1), Normalised(channels, 4 * channels, 1, activation=tf.identity)
    return [ends[0], Normalised(channels, channels, 3, stride), ends[1]], 4 * channels


def residual(layers, block, counts, classes):
    """@param block  gives its layers, and their last one's channels"""
    inputs = 64
    for channels, count in zip((64, 128, 256, 512), counts):
        for number in range(count):
            stride = 2 if number == 0 and channels != 64 else 1
            main, outputs = block(inputs, channels, stride)
            changes = inputs != outputs
            shortcut = Normalised(inputs, outputs, 1, stride, tf.identity) if changes else tf.identity
            layers.append(Block(Sequence(*main), shortcut))
            inputs = outputs
    return Sequence(*layers, lambda x: tf.reduce_mean(x, [1, 2]), Dense(inputs, classes))


if __name__ == "__main__":
    main()
