"""Ronda in Python: the C library by ctypes, arrays by NumPy. One file to copy; nothing to compile.

    import numpy as np, ronda
    with ronda.World() as world:                       # start it with: mpirun -n 4 python3 program.py
        gradient = np.full(1000, world.rank, np.float32)
        world.allreduce(gradient, "gradient", op="mean")   # in place, on all ranks
"""
import ctypes
import ctypes.util
import operator
import os
import pathlib

import numpy

ABI_VERSION = 1
OPERATIONS = {"sum": 0, "mean": 1, "min": 2, "max": 3, "prod": 4, "and": 5}
TYPES = {"float32": (0, 4), "float64": (1, 8), "int32": (2, 4), "uint8": (3, 1),  # their numbers and bytes
         "float16": (4, 2), "bfloat16": (5, 2), "int8": (6, 1), "int64": (7, 8)}


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
    try:
        library = ctypes.CDLL(str(next(filter(None, candidates()))), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError(f"{error}; set RONDA_LIBRARY to libronda.so") from None
    if library.ronda_abi_version() != ABI_VERSION:
        raise ImportError(f"libronda has ABI {library.ronda_abi_version()}, this file is for {ABI_VERSION}")
    library.ronda_last_error.restype = ctypes.c_size_t
    library.ronda_version.restype = ctypes.c_char_p
    return library


LIBRARY = load()
OPEN = set()  # the groups, with what they have in flight
ctypes.pythonapi.Py_IncRef(ctypes.py_object(OPEN))  # for good: Ronda's thread may outlive Python's memory


def call(function, *arguments):
    status = getattr(LIBRARY, function)(*arguments)
    if status != 0:
        text = ctypes.create_string_buffer(LIBRARY.ronda_last_error(None, ctypes.c_size_t(0)) + 1)
        LIBRARY.ronda_last_error(text, ctypes.c_size_t(len(text)))
        raise RondaError(status, text.value.decode(errors="replace"))


def encode(name):
    if name is None:
        return None
    if "\0" in name:  # where C would cut it
        raise ValueError(f"a name has no zero in it: {name!r}")
    return name.encode()


def known(table, what, key):
    if key not in table:
        raise ValueError(f"no {what} of Ronda's: {key!r}; there are {', '.join(table)}")
    return table[key]


def whole(number, what):
    """For C's int."""
    number = operator.index(number)
    if not -2**31 <= number < 2**31:
        raise ValueError(f"a {what} is a number of 32 bits, not {number}")
    return number


def set_field(structure, name, value):
    """Sets an option; refuses a number that C's type cannot hold, since ctypes would cut it."""
    setattr(structure, name, value)
    if getattr(structure, name) != value:
        raise ValueError(f"{name} cannot be {value!r}")


def view(array, dtype=None):
    """Pointer, count and type of an array that the library may write to. bfloat16 is uint16 with dtype="bfloat16"."""
    if not isinstance(array, numpy.ndarray) or not array.flags.carray:
        raise TypeError("takes a contiguous, aligned, writeable numpy.ndarray")
    name = array.dtype.name if dtype is None else dtype
    number, size = known(TYPES, "type", name)
    if size != array.itemsize or array.dtype.hasobject or not array.dtype.isnative:
        raise ValueError(f"{name} takes {size} bytes in native order; the array has {array.itemsize}, as {array.dtype!r}")
    return array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.size), number


class Options(ctypes.Structure):
    """ronda_options: what they mean stands in ronda.h."""
    _fields_ = [("size", ctypes.c_size_t), ("communication_timeout", ctypes.c_double), ("missing_warning", ctypes.c_double),
                ("missing_limit", ctypes.c_double), ("batch_bytes", ctypes.c_size_t), ("gather_seconds", ctypes.c_double),
                ("on_warning", ctypes.c_void_p), ("context", ctypes.c_void_p), ("print_warnings", ctypes.c_int)]
    NAMES = ["communication_timeout", "missing_warning", "missing_limit", "batch_bytes", "gather_seconds", "print_warnings"]

    def __init__(self, wanted):
        super().__init__()
        call("ronda_default_options", ctypes.byref(self), ctypes.c_size_t(ctypes.sizeof(self)))
        self.print_warnings = 1
        for name, value in wanted.items():
            known(dict.fromkeys(self.NAMES), "option", name)
            set_field(self, name, value)


class Request:
    """A reduction under way. Wait for each once; until then its array is the library's, and lives: of one that is
    dropped, until its group is closed."""

    def __init__(self, group, array):
        self.group, self.array = group, array
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
            try:
                call("ronda_wait", handle)
            finally:
                self.group.in_flight.discard(self)
        return self.array


class Group:
    """Ranks that reduce together. All its functions may be called by any thread."""
    end = "ronda_close"

    def __init__(self, handle):
        self.handle, self.in_flight = handle, set()
        rank, size = ctypes.c_int(), ctypes.c_int()
        call("ronda_rank", handle, ctypes.byref(rank))
        call("ronda_size", handle, ctypes.byref(size))
        self.rank, self.size = rank.value, size.value
        OPEN.add(self)

    def allreduce_async(self, array, name=None, op="sum", dtype=None):
        data, count, kind = view(array, dtype)
        request = Request(self, array)
        call("ronda_allreduce_async", self.handle, encode(name), data, count, kind, known(OPERATIONS, "operation", op),
             ctypes.byref(request.handle))
        self.in_flight.add(request)
        return request

    def allreduce(self, array, name=None, op="sum", dtype=None):
        return self.allreduce_async(array, name, op, dtype).wait()

    def broadcast(self, array, root=0, name=None, dtype=None):
        data, count, kind = view(array, dtype)
        call("ronda_broadcast", self.handle, encode(name), data, count, kind, whole(root, "root"))
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
        call("ronda_split", self.handle, encode(name), whole(color, "colour"), whole(key, "key"), ctypes.byref(part))
        return Group(part)

    def close(self):
        handle, self.handle = self.handle, None
        if handle:
            call(self.end, handle)
            OPEN.discard(self)  # not where that fails: its arrays may still be written to
            self.in_flight.clear()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:  # a rank that fails waits for nobody: its end tells the others
            self.close()


class World(Group):
    """All ranks. `communicator`: of mpi4py, where it has started MPI; otherwise the library does.

    Options, the same on all ranks, in seconds where they are times (0: never):
        missing_warning=60         ranks that others wait for are told of on standard error, then again at doubled times
        missing_limit=0            what these wait for fails
        communication_timeout=60   everything fails where a rank is dead, stopped or cut off from the network
        print_warnings=True        by the first rank, also of what the ranks had to do without, such as shared memory
        batch_bytes, gather_seconds: see ronda.h"""
    end = "ronda_finalize"

    def __init__(self, communicator=None, **options):
        handle, wanted = ctypes.c_void_p(), Options(options)
        if communicator is None:
            call("ronda_init", ctypes.byref(wanted), ctypes.byref(handle))
        else:
            call("ronda_init_comm", communicator.py2f(), ctypes.byref(wanted), ctypes.byref(handle))
        super().__init__(handle)
