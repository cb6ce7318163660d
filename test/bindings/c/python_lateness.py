"""Late ranks as a Python program meets them: `patient` waits and warns, `limited` gives up, and what was given up stays
apart from the next step."""
import os
import re
import sys
import tempfile
import time

import numpy_or_skip  # noqa: F401
import numpy

import ronda


class Captured:
    """What goes to standard error meanwhile, the library's lines as well."""

    def __enter__(self):
        self.file, self.before = tempfile.TemporaryFile(), os.dup(2)
        os.dup2(self.file.fileno(), 2)
        return self

    def __exit__(self, *error):
        os.dup2(self.before, 2)
        self.file.seek(0)
        lines = self.file.read().decode().splitlines()
        # Open MPI 5 has words of its own about networks: [host][[job,step],rank][file:line:function] …
        self.lines = [line for line in lines if not re.match(r"\[[^]]*\]\[\[\d+,\d+\],\d+\]\[", line)]
        if error[0]:
            print(*lines, sep="\n", file=sys.stderr)


def fails(part, function, *arguments):
    try:
        function(*arguments)
    except ronda.RondaError as error:
        assert error.status == 3 and part in str(error), error
    else:
        raise AssertionError(f"nobody said: {part}")


def options():
    defaults = ronda.Options({})
    assert (defaults.missing_warning, defaults.missing_limit, defaults.communication_timeout) == (60, 0, 60)
    assert defaults.print_warnings == 1
    try:
        ronda.World(missing_limits=3)
    except ValueError as error:
        assert "'missing_limits'; there are communication_timeout, missing_warning" in str(error), error
    else:
        raise AssertionError("an unknown option was taken")


def patient():
    with Captured() as captured:
        with ronda.World(missing_warning=0.3, communication_timeout=1) as world:
            last = world.size - 1
            for step in range(2):
                if world.rank == last and step == 1:
                    time.sleep(2)  # longer than the watchdog's timeout: its coordinator takes part all the time
                assert world.allreduce(numpy.full(1, step + 1.0), "x")[0] == (step + 1) * world.size
            if world.rank == last:
                time.sleep(1)
    warnings = [line for line in captured.lines if line.startswith("ronda: warning: ")]
    if world.rank > 0 or world.size == 1:
        assert not captured.lines, captured.lines
        return
    expected = [rf"'x' \(sum of float64 \(1\)\) was submitted by rank 0 on .*, and for {seconds} s not by rank {last} on "
                for seconds in ("0.3", "0.6", "1.2")]
    expected += [f"rank 0 on .* closed the coordinator, and for {seconds} s not rank {last} on" for seconds in ("0.3", "0.6")]
    if "RONDA_SHARED_MEMORY_LIMIT" in os.environ:
        expected.insert(0, "reductions use private memory, which is several times slower")
    assert len(warnings) >= len(expected), captured.lines
    for part in expected:
        assert sum(re.search(part, line) is not None for line in warnings) == 1, (part, captured.lines)


def limited():
    with ronda.World(missing_limit=0.7, print_warnings=False) as world:
        last = world.size - 1
        for step in range(5):
            if world.rank == last and step == 1:
                time.sleep(1.1)
            array = numpy.full(1, 10.0 ** step)
            if step == 1 and world.size > 1:
                fails(f"not by rank {last}" if world.rank < last else "gave it up", world.allreduce, array, "x")
            else:
                assert world.allreduce(array, "x")[0] == 10.0 ** step * world.size, array


options()
{"patient": patient, "limited": limited}[sys.argv[1]]()
