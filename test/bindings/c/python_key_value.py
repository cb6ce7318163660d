"""examples/python/ronda_kv.py: a store of Python's workers and a server whose update is Python's."""
import numpy_or_skip  # noqa: F401
import numpy

import ronda
import ronda_kv
from failing_calls import fails


def halves(key, begin, values, gradient):
    assert key == "values" and begin == 0
    assert not gradient.flags.writeable
    values -= gradient / 2


fails(TypeError, "no option 'sizes'", ronda_kv.Store, sizes=3)
fails(ValueError, "servers cannot be 4294967301", ronda_kv.Store, servers=2**32 + 5)
fails(ValueError, "part_bytes cannot be -64", ronda_kv.Store, part_bytes=-64)
fails(ValueError, "32 bits", ronda_kv.Store, server_ranks=[2**32 + 1])
fails(ronda.RondaError, "multiple of 64", ronda_kv.Store, part_bytes=65)  # and MPI is not begun
with ronda_kv.Store(server_ranks=[0]) as store:  # the first rank
    store.set_updater(halves)
    if store.is_server:
        assert store.of == 1
        fails(ronda.RondaError, "barrier is for workers", store.barrier)
        store.serve()
    else:
        values = numpy.full(1000, 8, numpy.float32)
        store.init("values", values)
        fails(TypeError, "float32", store.push, "values", values.astype(numpy.float64))
        fails(ronda.RondaError, "init it first", store.push, "others", values)
        for step in range(3):
            store.push("values", values)
            store.pull("values", values)
            assert (values == 8 / 2 ** (step + 1)).all(), values
        assert store.version("values") == 3
        store.barrier()
