#!/usr/bin/env python3
"""TensorFlow with ParameterServerStrategy on one machine: starts a server and workers, coordinates them, and prints samples a second.

Updates are asynchronous; this strategy knows no others. Variants: `steps` schedules each step from the coordinator, as TensorFlow's guide
does; `loop` 50 at once.
"""

import argparse
import json
import os
import subprocess
import sys
import time

STEPS_AT_ONCE = {"steps": 1, "loop": 50}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--variant", choices=list(STEPS_AT_ONCE), default="loop", help="how steps are scheduled")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--servers", type=int, default=1, metavar="N")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="samples a step, of one worker")
    parser.add_argument("--steps", type=int, default=2000, metavar="N", help="to measure, of all workers together, after as many to warm up")
    parser.add_argument("--port", type=int, default=29500, metavar="N", help="this one and the next ones, one a process, are free")
    parser.add_argument("--data", metavar="DIR", default=os.path.join(os.path.dirname(__file__), "../../share/mnist"))
    return parser.parse_args()


def cluster(options):
    ports = iter(range(options.port, options.port + options.workers + options.servers + 1))
    address = lambda: f"127.0.0.1:{next(ports)}"
    return {
        "chief": [address()],
        "worker": [address() for _ in range(options.workers)],
        "ps": [address() for _ in range(options.servers)],
    }


def serve():
    """A worker or a server, until it is ended."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    settings = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2)
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, config=settings, protocol="grpc"
    )
    server.join()


def start(tasks, options):
    """The processes of all tasks but the chief's."""
    children = []
    for kind in ("worker", "ps"):
        for index in range(len(tasks[kind])):
            environment = os.environ | {"TF_CONFIG": json.dumps({"cluster": tasks, "task": {"type": kind, "index": index}})}
            children.append(subprocess.Popen([sys.executable, __file__, "--serve"], env=environment, stdout=subprocess.DEVNULL))
    os.environ["TF_CONFIG"] = json.dumps({"cluster": tasks, "task": {"type": "chief", "index": 0}})
    return children


def main():
    if "--serve" in sys.argv:
        return serve()
    options = arguments()
    children = start(cluster(options), options)
    try:
        print(json.dumps(measure(options)), flush=True)
    finally:
        for child in children:
            child.kill()


def initial_values(inputs):
    """Of 128 hidden and 10 outputs."""
    import numpy

    draw = numpy.random.default_rng(1)
    for rows, columns in ((inputs, 128), (128, 10)):
        limit = (6 / (rows + columns)) ** 0.5
        yield draw.uniform(-limit, limit, (rows, columns)).astype(numpy.float32)
        yield numpy.zeros(columns, numpy.float32)


def measure(options):
    import mnist
    import numpy
    import tensorflow as tf

    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    images, labels = mnist.read(options.data, "train")
    images = images.reshape(len(images), -1)
    at_once = STEPS_AT_ONCE[options.variant]

    with strategy.scope():
        parameters = [tf.Variable(value) for value in initial_values(images.shape[1])]
        velocities = [tf.Variable(tf.zeros_like(parameter)) for parameter in parameters]

    def update(batch, targets):
        with tf.GradientTape() as tape:
            values = [tf.identity(parameter) for parameter in parameters]  # one pull of each
            tape.watch(values)
            weight1, bias1, weight2, bias2 = values
            logits = tf.nn.bias_add(tf.nn.relu(tf.nn.bias_add(batch @ weight1, bias1)) @ weight2, bias2)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits))
        for parameter, velocity, gradient in zip(parameters, velocities, tape.gradient(loss, values)):
            tf.raw_ops.ResourceApplyMomentum(  # on the parameter's server; Keras 3 has no optimizers for this strategy
                var=parameter.handle, accum=velocity.handle, lr=0.01, grad=gradient, momentum=0.9
            )
        return loss

    def pipeline():
        """All samples, and numbers of those of the next steps: each is copied once, into its batch."""
        numbers = tf.data.Dataset.range(len(labels)).shuffle(len(labels)).repeat()
        numbers = numbers.batch(options.batch_size * at_once, drop_remainder=True)
        return tf.data.Dataset.zip((tf.data.Dataset.from_tensors((images, labels)).repeat(), numbers)).prefetch(2)

    data = iter(coordinator.create_per_worker_dataset(pipeline))

    @tf.function
    def steps(iterator):
        (inputs, targets), numbers = next(iterator)
        loss = 0.0
        for step in tf.range(at_once):
            chosen = numbers[step * options.batch_size : (step + 1) * options.batch_size]
            loss = update(tf.gather(inputs, chosen), tf.gather(targets, chosen))
        return loss

    def train(count):
        begin = time.perf_counter()
        losses = [coordinator.schedule(steps, args=(data,)) for _ in range(count)]
        coordinator.join()
        return time.perf_counter() - begin, float(losses[-1].fetch())

    count = max(1, options.steps // at_once)
    train(count)
    seconds, loss = train(count)
    if not numpy.isfinite(loss):
        raise SystemExit("the loss is not finite")
    return {
        "peer": "tensorflow ParameterServerStrategy",
        "version": tf.__version__,
        "variant": options.variant,
        "workers": options.workers,
        "servers": options.servers,
        "samples_per_second": count * at_once * options.batch_size / seconds,
        "loss": loss,
    }


if __name__ == "__main__":
    main()
