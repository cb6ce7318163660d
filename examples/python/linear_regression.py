"""Data-parallel training in NumPy: each rank has samples of its own, gradients are averaged in whatever order they come.

    mpirun -n 2 python3 linear_regression.py
"""
import threading

import numpy

import ronda


def samples(rank, count, features):
    random = numpy.random.default_rng(rank)
    x = random.standard_normal((count, features)).astype(numpy.float32)
    return x, x @ numpy.arange(1, features + 1, dtype=numpy.float32) + 0.5


def train(world, steps=200, rate=0.1):
    x, y = samples(world.rank, 64, 8)
    weights, bias = numpy.zeros(8, numpy.float32), numpy.zeros(1, numpy.float32)
    if world.rank == 0:
        weights += 1  # all start from rank 0's
    world.broadcast(weights, name="weights")
    for step in range(steps):
        error = x @ weights + bias - y
        gradients = {"weights": x.T @ error / len(x), "bias": error.mean(keepdims=True)}
        order = sorted(gradients, reverse=(world.rank + step) % 2 == 1)  # another one on every rank
        requests = [world.allreduce_async(gradients[name], f"gradient of {name}", op="mean") for name in order]
        for request in requests:
            request.wait()
        weights -= rate * gradients["weights"]
        bias -= rate * gradients["bias"]
    return weights, bias


def check_types(world):
    total = world.size * (world.size + 1) // 2
    for name in ["float32", "float64", "float16", "int8", "uint8", "int32", "int64"]:
        array = numpy.full((3, 2), world.rank + 1, name)
        world.allreduce(array, f"type {name}")
        assert (array == total).all(), (name, array)
    halves = (numpy.full(4, world.rank + 1, numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
    world.allreduce(halves, "halves", op="max", dtype="bfloat16")
    assert ((halves.astype(numpy.uint32) << 16).view(numpy.float32) == world.size).all()
    gathered = world.allgather(numpy.array([world.rank, -world.rank]), "gathered")
    assert (gathered == [[rank, -rank] for rank in range(world.size)]).all(), gathered


def check_threads(world):
    arrays = [numpy.full(100 + k, world.rank + k, numpy.float64) for k in range(40)]

    def submit(first):
        for k in range(first, len(arrays), 4):
            world.allreduce(arrays[k], f"of a thread {k}")

    threads = [threading.Thread(target=submit, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ranks = world.size * (world.size - 1) // 2
    assert all((array == ranks + k * world.size).all() for k, array in enumerate(arrays))


def check_errors(world):
    if world.size == 1:
        return
    try:
        world.allreduce(numpy.zeros(3 if world.rank == 0 else 4), "disagreement")
    except ronda.RondaError as error:
        assert "'disagreement'" in str(error) and "rank 0" in str(error), error
    else:
        raise AssertionError("the ranks' shapes differ, and nobody said so")


def main():
    with ronda.World() as world:
        check_types(world)
        check_threads(world)
        check_errors(world)
        with world.split(world.rank % 2, world.rank) as part:
            ones = part.allreduce(numpy.ones(1))
            assert ones[0] == part.size
        weights, bias = train(world)
        assert numpy.abs(weights - numpy.arange(1, 9)).max() < 1e-3 and abs(bias[0] - 0.5) < 1e-3, (weights, bias)
        everybody = world.allgather(weights, "the end")
        assert (everybody == weights).all()  # replicas are equal to the bit
        assert world.join() in range(world.size)
        if world.rank == 0:
            version = ronda.LIBRARY.ronda_version().decode()
            print(f"ronda {version}: {world.size} ranks agree; weights {weights.round(3).tolist()}, bias {bias[0]:.3f}")


if __name__ == "__main__":
    main()
