"""Peak resident memory of this process."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def highest() -> int:
    """Return the peak memory of this process so far, or since it was last reset, in bytes."""
    # The system's `ru_maxrss` may include the memory of the process that started this one.
    with suppress(OSError):
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def reset_highest() -> int:
    """Lower the recorded peak to the present memory, if the system allows it, and return it."""
    with suppress(OSError):
        RESET.write_text("5")
    return highest()
