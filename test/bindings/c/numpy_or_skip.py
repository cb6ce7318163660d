"""To be imported before NumPy: goes on with the system's Python where this one has none, or is skipped."""
import os
import sys

SYSTEM = "/usr/bin/python3"  # its NumPy is Debian's package
try:
    import numpy
except ImportError:
    if os.path.exists(SYSTEM) and not os.environ.get("RONDA_TRIED_SYSTEM_PYTHON"):
        os.execve(SYSTEM, [SYSTEM, *sys.argv], {**os.environ, "RONDA_TRIED_SYSTEM_PYTHON": "1"})
    print("skipped: no NumPy (python3-numpy)")
    sys.exit(77)
