#!/usr/bin/env python3
"""TensorFlow with MultiWorkerMirroredStrategy, one worker a rank, over its ring collectives (gRPC)."""

import json
import os

import measure
import mnist
import tensorflow as tf

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
        images, labels = mnist.read(options.data, "train")
        self.images = tf.constant(images[measure.RANK :: measure.RANKS, ..., None])
        self.labels = tf.constant(labels[measure.RANK :: measure.RANKS])
        self.batch_size = options.batch_size
        self.steps_an_epoch = len(self.labels) // self.batch_size
        self.next_step = self.steps_an_epoch
        self.strategy = strategy
        self.model = convolutional() if options.workload == "cnn" else dense(HIDDEN[options.workload])
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
        images = tf.ensure_shape(images, [self.batch_size, 28, 28, 1])
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


if __name__ == "__main__":
    main()
