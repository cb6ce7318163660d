"""Uses examples/python/ronda.py wrongly: every mistake raises an exception that names it, and the next call works.
Means of integers are exact, also if their sums do not fit."""
import ctypes
import weakref

import numpy_or_skip  # noqa: F401
import numpy

import ronda
from failing_calls import fails


def arrays_are_what_they_are_called(world):
    floats = numpy.ones(4, numpy.float32)
    fails(ValueError, "float64 takes 8 bytes in native order; the array has 4, as dtype('float32')", world.allreduce, floats,
          dtype="float64")
    fails(ValueError, "bfloat16 takes 2 bytes", world.broadcast, floats, dtype="bfloat16")
    fails(ValueError, "dtype('>f4')", world.allreduce, floats.astype(">f4"))
    fails(ValueError, "dtype('>u2')", world.allgather, numpy.ones(4, ">u2"), dtype="bfloat16")
    fails(ValueError, "dtype('O')", world.allreduce, numpy.array([world]), dtype="int64")
    fails(ValueError, "'complex64'; there are float32, float64", world.allreduce, floats.astype(numpy.complex64))
    fails(ValueError, "'float'; there are float32", world.allreduce, floats, dtype="float")
    fixed = floats.copy()
    fixed.flags.writeable = False
    shifted = numpy.frombuffer(bytearray(9), numpy.float32, 2, offset=1)
    for array in fixed, shifted, floats[::2], [1.0]:
        fails(TypeError, "contiguous, aligned, writeable", world.allreduce, array)
    assert (floats == 1).all()


def words_are_known(world):
    one = numpy.ones(1)
    fails(ValueError, "'avg'; there are sum, mean, min, max, prod, and", world.allreduce, one, op="avg")
    fails(ValueError, r"'a\x00b'", world.allreduce, one, "a\0b")
    fails(ValueError, r"'a\x00b'", world.barrier, "a\0b")


def ranks_are_numbers_of_c(world):
    one = numpy.ones(1)
    for root in 1 << 32, -(1 << 31) - 1:  # of which C would see 0
        fails(ValueError, f"32 bits, not {root}", world.broadcast, one, root=root)
    fails(TypeError, "integer", world.broadcast, one, root=1.0)


def means_of_integers_do_not_wrap(world):
    for dtype in numpy.int8, numpy.uint8, numpy.int32, numpy.int64:
        most = numpy.iinfo(dtype).max
        mean = world.allreduce(numpy.full(3, most, dtype), f"mean of {numpy.dtype(dtype)}", op="mean")
        assert (mean == most).all(), mean


def a_call_that_fails_on_one_rank_is_not_taken_for_its_next(world):
    ones = numpy.ones(3, numpy.float32)

    def reduce():
        world.allreduce(ones, "gradient")
    reduce()
    if world.size > 1:
        if world.rank == 0:
            no_data = world.handle, b"gradient", None, ctypes.c_size_t(3), 0, 0
            fails(ronda.RondaError, "NULL", ronda.call, "ronda_allreduce", *no_data)
        fails(ronda.RondaError, "after 1 call that failed on that rank alone", reduce)
    ones[:] = 1
    reduce()
    assert (ones == world.size).all(), ones


def what_is_in_flight_lives(world):
    """Rank 0 drops a large array, which has pages of its own, before anybody else has one to reduce with it."""
    part = world.split(0)

    def submit(name):
        array = numpy.full(1 << 22, 1, numpy.float32)
        return weakref.ref(array), part.allreduce_async(array, name)

    if world.rank == 0:
        dropped = submit("dropped")[0]
    world.barrier()
    if world.rank != 0:
        dropped = submit("dropped")[0]
    waited, request = submit("waited")
    assert (request.wait() == world.size).all()
    del request
    assert waited() is None, "kept for nothing"
    array = dropped()
    assert array is not None, "freed in flight"
    part.close()
    assert (array == world.size).all()
    del array
    assert dropped() is None, "kept for nothing"


def the_library_is_missed():
    ronda.candidates = lambda: [None, "libronda-that-is-nowhere.so"]
    fails(ImportError, "set RONDA_LIBRARY to libronda.so", ronda.load)


with ronda.World() as world:
    arrays_are_what_they_are_called(world)
    words_are_known(world)
    ranks_are_numbers_of_c(world)
    means_of_integers_do_not_wrap(world)
    a_call_that_fails_on_one_rank_is_not_taken_for_its_next(world)
    what_is_in_flight_lives(world)
    the_library_is_missed()
    assert world.allreduce(numpy.ones(1))[0] == world.size
