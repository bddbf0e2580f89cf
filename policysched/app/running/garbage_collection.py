"""Garbage collections of Python in small steps between other work, so that they do not delay scheduling cycles.

Nearly all objects are freed by reference counting; only reference cycles need a collection. A full collection takes 0.2
s and more with 5,000 nodes and 50,000 pods. Objects that have survived several collections are therefore frozen
(`gc.freeze`), and later collections see only newer objects. A full collection finds cycles among frozen objects. It
runs when the memory has doubled although cached answers and the number of objects do not explain it, which means a
leak.

The allocator of the C library keeps freed memory until it is asked to return it to the system.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

YOUNG: Final = 2000
"""Number of new objects after which the interpreter collects the youngest generation; this takes 1 ms."""
FEW: Final = 2000
"""Number of survivors of the youngest generation from which they are collected and frozen."""
MOST: Final = 6000
"""Largest number of survivors that are collected; more are frozen without a collection, which would take too long."""
RARELY: Final = 1_000_000
"""`YOUNG` while lists are loaded: nearly all new objects stay, and a collection costs 1 µs for each pod."""
NEVER: Final = 1 << 30
PAUSE: Final = 0.01
"""Interval between checks of the number of survivors. Units: seconds."""
LONGEST_PAUSE: Final = 0.16
"""Longest interval between checks if no new objects are created. Units: seconds."""
MEASURED_EVERY: Final = 16
GROWTH: Final = 2
FEWEST_OBJECTS: Final = 10_000
"""Smallest number of objects by which memory is divided; fewer count as this many, because the process itself uses
memory."""
LITTLE: Final = 256 << 20
"""Smallest amount of memory; less counts as this much, so that growth up to twice as much is no leak. Units: bytes."""
RETURNED_EVERY: Final = 10.0
"""Interval between checks of the allocator's freed memory. Units: seconds."""
MUCH_FREED: Final = 64 << 20
"""Growth of freed memory from which it is returned to the system. Units: bytes."""
_STATM: Final = Path("/proc/self/statm")
_PAGE_SIZE: Final = 4096


class ObjectHolder(Protocol):
    """Provider of the numbers that explain the memory of the process."""

    @property
    def kept_bytes(self) -> int:
        """Memory of cached answers, which has its own limit. Units: bytes."""

    @property
    def object_count(self) -> int:
        """Number of API objects in memory."""


class MemoryPerObject:
    """Measure of the process's memory for each API object, without cached answers.

    Divides by the largest number of objects.

    Args:
        holder: Provider of the memory of answers and the number of objects.
        resident: Returns the resident memory of the process in bytes.
    """

    def __init__(self, holder: ObjectHolder, resident: Callable[[], int] | None = None) -> None:
        self._holder = holder
        self._resident = resident or resident_bytes
        self._most = FEWEST_OBJECTS

    def __call__(self) -> float:
        """Return the memory per object. Units: bytes."""
        self._most = max(self._most, self._holder.object_count)
        return max(LITTLE, self._resident() - self._holder.kept_bytes) / self._most


class _Mallinfo2(ctypes.Structure):
    """Result of glibc's mallinfo2(3)."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


class FreedMemory:
    """The freed memory in the C library, which is returned to the system when it has grown.

    Does nothing with libraries other than glibc 2.33 and later.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._info = getattr(library, "mallinfo2", None)
        self._trim = getattr(library, "malloc_trim", None)
        if self._info is not None:
            self._info.restype = _Mallinfo2
        self._least = 0
        """Smallest freed memory since some was returned; the library still counts returned memory as freed."""

    @property
    def kept_bytes(self) -> int:
        """Freed memory in the library, including memory that was returned to the system. Units: bytes."""
        return int(self._info().fordblks) if self._info is not None else 0

    def return_much(self) -> None:
        """Return freed memory to the system if it has grown by `MUCH_FREED`.

        Cost: 0.1 ms if nothing is returned, otherwise 5 to 12 ms for 100 MiB.
        """
        kept = self.kept_bytes
        self._least = min(self._least, kept)
        if self._trim is not None and kept >= self._least + MUCH_FREED:
            self._trim(0)
            self._least = self.kept_bytes


class GarbageCollection:
    """Collects and freezes the objects that survive the interpreter's collections of the youngest generation."""

    def __init__(self, memory: Callable[[], float]) -> None:
        self._memory = memory
        self._number = 0
        self._seen = 0
        """Number of collections of the youngest generation at the last check."""
        self._after_whole = 0.0
        """Memory after the last full collection; 0 before the first."""

    def collect(self) -> None:
        """Collect and freeze survivors if they are enough; run a full collection if memory has doubled."""
        survivors = len(gc.get_objects(generation=1))
        if survivors < FEW:
            return
        if survivors <= MOST:
            gc.collect(1)
        gc.freeze()
        self._number += 1
        if self._number % MEASURED_EVERY:
            return
        if not self._after_whole:
            self._after_whole = self._memory()
        elif self._memory() > GROWTH * self._after_whole:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._after_whole = self._memory()

    async def run(self) -> None:
        """Check for survivors periodically until cancelled, less often while no objects are created."""
        pause, clock, freed = PAUSE, asyncio.get_running_loop().time, FreedMemory()
        due = clock() + RETURNED_EVERY
        while True:
            await asyncio.sleep(pause)
            if clock() >= due:
                freed.return_much()
                due = clock() + RETURNED_EVERY
            young = gc.get_stats()[0]["collections"]
            pause = PAUSE if young != self._seen else min(2 * pause, LONGEST_PAUSE)
            if young != self._seen:
                self._seen = young
                self.collect()


@contextmanager
def short_collections(memory: Callable[[], float]) -> Iterator[GarbageCollection]:
    """Keep garbage collections short inside this context.

    Args:
        memory: Returns a measure, in any unit, that grows only with a leak.

    Yields:
        Who is to be run beside the other work.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(YOUNG, NEVER, NEVER)
    try:
        yield GarbageCollection(memory)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def taking_lists() -> Iterator[None]:
    """Collect garbage rarely inside this context, because lists create hardly any.

    All objects are frozen at the end.
    """
    before = gc.get_threshold()
    gc.set_threshold(RARELY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.freeze()


def resident_bytes() -> int:
    """Return the resident memory of the process; 0 if the system does not report it."""
    with suppress(OSError):
        return int(_STATM.read_text().split()[1]) * _PAGE_SIZE
    return 0
