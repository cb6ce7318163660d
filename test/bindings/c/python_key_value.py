"""examples/python/ronda_kv.py: a store of Python's workers and a server whose update is Python's."""
import numpy_or_skip  # noqa: F401
import numpy

import ronda
import ronda_kv
from failing_calls import fails


def halves(key, begin, values, gradient):
    assert key == "values" and begin == 0
    values -= gradient / 2


fails(TypeError, "no option 'sizes'", ronda_kv.Store, sizes=3)
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
