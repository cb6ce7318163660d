"""Ronda's parameter server in Python: ronda_kv.h by ctypes, arrays by NumPy. A file to copy, beside ronda.py.

    import numpy as np, ronda_kv
    with ronda_kv.Store() as store:                        # start it with: mpirun -n 3 python3 program.py
        store.set_optimizer("sgd", 0.1)
        place = np.zeros(2, np.float32)
        if store.is_server:
            store.serve()                                  # until all workers have closed
        else:
            store.init("place", place)
            for _ in range(200):
                store.push("place", place - store.index)   # the gradient of half the squared distance
                store.pull("place", place)
"""
import ctypes

import numpy

import ronda

UPDATE_TYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_float),
                               ctypes.POINTER(ctypes.c_float), ctypes.c_void_p)


class Options(ctypes.Structure):
    """ronda_kv_options: what they mean stands in ronda_kv.h."""
    _fields_ = [("size", ctypes.c_size_t), ("servers", ctypes.c_int), ("server_ranks", ctypes.POINTER(ctypes.c_int)),
                ("asynchronous", ctypes.c_int), ("replicas_to_aggregate", ctypes.c_int), ("max_staleness", ctypes.c_int64),
                ("part_bytes", ctypes.c_size_t), ("communication_timeout", ctypes.c_double),
                ("ahead_bytes", ctypes.c_size_t)]


class Part(ctypes.Structure):
    """ronda_kv_part: of a value, for an update."""
    _fields_ = [("key", ctypes.c_char_p), ("begin", ctypes.c_size_t), ("count", ctypes.c_size_t), ("total", ctypes.c_size_t)]


def floats(array, written):
    """Pointer and count of an array of float32."""
    good = isinstance(array, numpy.ndarray) and array.dtype == numpy.float32 and array.flags.c_contiguous
    if not good or (written and not array.flags.writeable):
        raise TypeError("takes a contiguous numpy.ndarray of float32" + (", writeable" if written else ""))
    return array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.size)


class Store:
    """Collective to make. `options` are the fields of Options; `server_ranks` a list. Used by one thread."""

    def __init__(self, **options):
        wanted = Options()
        ronda.call("ronda_kv_default_options", ctypes.byref(wanted), ctypes.c_size_t(ctypes.sizeof(wanted)))
        ranks = options.pop("server_ranks", None)
        if ranks is not None:
            if "servers" in options:
                raise TypeError("give servers or server_ranks")
            options["servers"] = len(ranks)
            wanted.server_ranks = (ctypes.c_int * len(ranks))(*(ronda.whole(rank, "rank") for rank in ranks))
        for name, value in options.items():
            if name not in dict(Options._fields_) or name == "size":
                raise TypeError(f"Store has no option {name!r}")
            ronda.set_field(wanted, name, value)
        self.handle, self.update, self.error = ctypes.c_void_p(), None, None
        ronda.call("ronda_kv_open", ctypes.byref(wanted), ctypes.byref(self.handle))
        server, index, of = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        ronda.call("ronda_kv_is_server", self.handle, ctypes.byref(server))
        ronda.call("ronda_kv_index", self.handle, ctypes.byref(index), ctypes.byref(of))
        self.is_server, self.index, self.of = bool(server.value), index.value, of.value

    def set_optimizer(self, name, learning_rate=0.0):
        ronda.call("ronda_kv_set_optimizer", self.handle, ronda.encode(name), ctypes.c_double(learning_rate))

    def set_updater(self, update):
        """update(key, begin, values, gradient) changes `values` in place, on the servers. Both arrays are the store's:
        not to be kept. Where it raises, `serve` raises a RondaError with that as its cause; workers hear that it failed."""
        def called(part, _updates, values, gradient, _context):
            try:
                shown = Part.from_address(part)
                shape = (shown.count,)
                read = numpy.ctypeslib.as_array(gradient, shape)
                read.flags.writeable = False
                update(shown.key.decode(), shown.begin, numpy.ctypeslib.as_array(values, shape), read)
            except BaseException as error:  # which C cannot pass on
                self.error = error
                return 1
            return 0
        new = UPDATE_TYPE(called)
        ronda.call("ronda_kv_set_updater", self.handle, new, None)
        self.update = new  # as long as the store

    def serve(self):
        try:
            ronda.call("ronda_kv_serve", self.handle)
        except ronda.RondaError as failed:
            raise failed from self.error

    def init(self, key, values):
        ronda.call("ronda_kv_init", self.handle, ronda.encode(key), *floats(values, False))

    def push(self, key, gradient):
        ronda.call("ronda_kv_push", self.handle, ronda.encode(key), *floats(gradient, False))

    def pull(self, key, values):
        ronda.call("ronda_kv_pull", self.handle, ronda.encode(key), *floats(values, True))

    def version(self, key):
        updates = ctypes.c_uint64()
        ronda.call("ronda_kv_version", self.handle, ronda.encode(key), ctypes.byref(updates))
        return updates.value

    def barrier(self):
        ronda.call("ronda_kv_barrier", self.handle)

    def close(self):
        handle, self.handle = self.handle, ctypes.c_void_p()
        if handle:
            ronda.call("ronda_kv_close", handle)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.close()
        elif self.handle and not self.is_server:
            handle, self.handle = self.handle, ctypes.c_void_p()
            try:
                why = repr(value)
            except Exception:
                why = kind.__name__
            ronda.call("ronda_kv_leave", handle, why.encode(errors="backslashreplace"))
