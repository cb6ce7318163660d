"""Ronda in Python: the C library by ctypes, arrays by NumPy. One file to copy; nothing to compile.

    import numpy as np, ronda
    with ronda.World() as world:                       # start it with: mpirun -n 4 python3 program.py
        gradient = np.full(1000, world.rank, np.float32)
        world.allreduce(gradient, "gradient", op="mean")   # in place, on all ranks
"""
import ctypes
import ctypes.util
import os
import pathlib

import numpy

ABI_VERSION = 1
OPERATIONS = {"sum": 0, "mean": 1, "min": 2, "max": 3, "prod": 4, "and": 5}
TYPES = {"float32": 0, "float64": 1, "int32": 2, "uint8": 3, "float16": 4, "bfloat16": 5, "int8": 6, "int64": 7}


class RondaError(RuntimeError):
    """What a call ended with: `status` as in ronda.h, and the text."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def candidates():
    """RONDA_LIBRARY, or beside this file's installation, or where the system finds it."""
    yield os.environ.get("RONDA_LIBRARY")
    for prefix in list(pathlib.Path(__file__).resolve().parents)[4:5]:  # <prefix>/share/ronda/examples/python
        yield from prefix.glob("lib*/libronda.so")
        yield from prefix.glob("lib/*/libronda.so")
    yield ctypes.util.find_library("ronda")
    yield "libronda.so"


def load():
    """libronda.so, and what its functions return."""
    # MPI loads its own parts when it starts, and looks for its symbols among the global ones.
    library = ctypes.CDLL(str(next(filter(None, candidates()))), mode=ctypes.RTLD_GLOBAL)
    if library.ronda_abi_version() != ABI_VERSION:
        raise ImportError(f"libronda has ABI {library.ronda_abi_version()}, this file is for {ABI_VERSION}")
    library.ronda_last_error.restype = ctypes.c_size_t
    library.ronda_version.restype = ctypes.c_char_p
    return library


LIBRARY = load()


def call(function, *arguments):
    status = getattr(LIBRARY, function)(*arguments)
    if status != 0:
        text = ctypes.create_string_buffer(LIBRARY.ronda_last_error(None, ctypes.c_size_t(0)) + 1)
        LIBRARY.ronda_last_error(text, ctypes.c_size_t(len(text)))
        raise RondaError(status, text.value.decode(errors="replace"))


def encode(name):
    return None if name is None else name.encode()


def view(array, dtype=None):
    """Pointer, count and type of an array that the library may write to. bfloat16 is uint16 with dtype="bfloat16"."""
    if not isinstance(array, numpy.ndarray) or not array.flags.c_contiguous or not array.flags.writeable:
        raise TypeError("takes a contiguous, writeable numpy.ndarray")
    name = dtype or array.dtype.name
    if name not in TYPES or (name == "bfloat16" and array.dtype != numpy.uint16):
        raise TypeError(f"no type of Ronda's: {name}")
    return array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.size), TYPES[name]


class Request:
    """A reduction under way. Wait for each once; until then its array is the library's."""

    def __init__(self, array):
        self.array = array  # so that it lives as long as this
        self.handle = ctypes.c_void_p()

    def done(self):
        if not self.handle:
            return True
        result = ctypes.c_int()
        call("ronda_test", self.handle, ctypes.byref(result))
        return bool(result.value)

    def wait(self):
        handle, self.handle = self.handle, ctypes.c_void_p()
        if handle:
            call("ronda_wait", handle)
        return self.array


class Group:
    """Ranks that reduce together. All its functions may be called by any thread."""

    def __init__(self, handle):
        self.handle = handle
        rank, size = ctypes.c_int(), ctypes.c_int()
        call("ronda_rank", handle, ctypes.byref(rank))
        call("ronda_size", handle, ctypes.byref(size))
        self.rank, self.size = rank.value, size.value

    def allreduce_async(self, array, name=None, op="sum", dtype=None):
        data, count, kind = view(array, dtype)
        request = Request(array)
        call("ronda_allreduce_async", self.handle, encode(name), data, count, kind, OPERATIONS[op],
             ctypes.byref(request.handle))
        return request

    def allreduce(self, array, name=None, op="sum", dtype=None):
        return self.allreduce_async(array, name, op, dtype).wait()

    def broadcast(self, array, root=0, name=None, dtype=None):
        data, count, kind = view(array, dtype)
        call("ronda_broadcast", self.handle, encode(name), data, count, kind, root)
        return array

    def allgather(self, array, name=None, dtype=None):
        """Everybody's array, by rank, along a new first axis."""
        data, count, kind = view(array, dtype)
        result = numpy.empty((self.size, *array.shape), array.dtype)
        call("ronda_allgather", self.handle, encode(name), data, view(result, dtype)[0], count, kind)
        return result

    def barrier(self, name=None):
        call("ronda_barrier", self.handle, encode(name))

    def join(self):
        """No more data here: returns when no rank has any, the last of them."""
        last = ctypes.c_int()
        call("ronda_join", self.handle, ctypes.byref(last))
        return last.value

    def split(self, color, key=0, name=None):
        part = ctypes.c_void_p()
        call("ronda_split", self.handle, encode(name), color, key, ctypes.byref(part))
        return Group(part)

    def close(self):
        handle, self.handle = self.handle, None
        if handle:
            call("ronda_close", handle)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:  # a rank that fails waits for nobody: its end tells the others
            self.close()


class World(Group):
    """All ranks. `communicator`: of mpi4py, where it has started MPI; otherwise the library does."""

    def __init__(self, communicator=None):
        handle = ctypes.c_void_p()
        if communicator is None:
            call("ronda_init", None, ctypes.byref(handle))
        else:
            call("ronda_init_comm", communicator.py2f(), None, ctypes.byref(handle))
        super().__init__(handle)

    def close(self):
        handle, self.handle = self.handle, None
        if handle:
            call("ronda_finalize", handle)
