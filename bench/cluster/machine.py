"""Properties and load of the machine: processor time, memory, waiting for an idle machine.

All values come from /proc. Units: seconds, MiB.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_IDLE: Final = (3, 4)
"""Indexes of idle and iowait in a processor's line of /proc/stat."""
_COUNTED: Final = 8
"""Number of fields of /proc/stat that are added up; the guest fields after them are part of user time."""
WINDOW: Final = 0.5
"""Length of the interval in which the machine must be idle. Units: seconds."""
QUIET: Final = 0.15
"""Largest use of processors by which the machine counts as idle. Units: processors."""


def cpu_of(pid: int) -> float:
    """Return the processor time of a process; 0 if it has ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def memory_of(pid: int) -> tuple[float, float]:
    """Return the peak and the present resident memory of a process; 0 if it has ended."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
        found = {name: rest for name, _, rest in (line.partition(":") for line in lines)}
        return int(found["VmHWM"].split()[0]) / 1024, int(found["VmRSS"].split()[0]) / 1024
    return 0.0, 0.0


def cpu_of_all() -> float:
    """Return the processor time that the whole machine has used, including time that the hypervisor took."""
    first = Path("/proc/stat").read_text("utf-8").splitlines()[0].split()[1:]
    return sum(int(one) for place, one in enumerate(first[:_COUNTED]) if place not in _IDLE) / _TICKS


class Patience:
    """A limit for the total wait for an idle machine, shared by all runs."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.left = seconds
        self._clock = clock

    def wait(self, used: Callable[[], float] = cpu_of_all, sleep: Callable[[float], None] = time.sleep) -> bool:
        """Wait until the machine is idle or the limit is reached; return whether it is idle."""
        while self.left > 0:
            began, before = self._clock(), used()
            sleep(WINDOW)
            took = self._clock() - began
            if used() - before < QUIET * took:
                return True
            self.left -= took
        return False


@dataclass(frozen=True, slots=True)
class Machine:
    """The properties of the machine that figures depend on."""

    processor: str
    cores: int
    memory_gib: float
    kernel: str
    python: str

    @classmethod
    def here(cls) -> Machine:
        """Return the properties of this machine."""
        info = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in info if line.startswith("model name")]
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        cores = os.cpu_count() or 1
        name = names[0] if names else platform.machine()
        return cls(name, cores, round(pages / 2**30, 1), platform.release(), platform.python_version())
