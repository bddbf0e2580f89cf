"""Python's garbage collection in small steps between other work, so that no scheduling cycle waits for it.

Nearly everything here is freed as soon as nobody holds it; only reference cycles wait for a collection. A full one
takes 0.2 s and more with 5,000 nodes and 50,000 pods. So what survived often enough is frozen (`gc.freeze`): later
collections see only what came since. Cycles among frozen objects are found by a full collection once memory has doubled
that neither kept answers nor the number of objects explain; that is a leak and no growth.

What was freed stays with the allocator of the C library, until it is asked to return it to the system.
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
"""After how many new objects the interpreter collects these, whatever is being done: 1 ms."""
FEW: Final = 2000
"""How many objects that survived that are worth a collection of theirs."""
MOST: Final = 6000
"""More of them are frozen without one, which would take too long."""
RARELY: Final = 1_000_000
"""The same while lists are taken in: nearly all that is made then stays, and each look at it takes 1 µs a pod."""
NEVER: Final = 1 << 30
PAUSE: Final = 0.01
"""How long it is between looks at survivors. Units: seconds."""
LONGEST_PAUSE: Final = 0.16
"""The same while nothing happens. Units: seconds."""
MEASURED_EVERY: Final = 16
GROWTH: Final = 2
FEWEST_OBJECTS: Final = 10_000
"""Memory that fewer objects take counts as if they were so many: the process itself takes some."""
LITTLE: Final = 256 << 20
"""Memory counts as if it were at least so much: up to twice that, growth is no reason to look. Units: bytes."""
RETURNED_EVERY: Final = 10.0
"""How long it is between looks at what the allocator has kept of freed memory. Units: seconds."""
MUCH_FREED: Final = 64 << 20
"""From how much more of that on than there was the last time it is returned to the system. Units: bytes."""
_STATM: Final = Path("/proc/self/statm")
_PAGE_SIZE: Final = 4096


class ObjectHolder(Protocol):
    """What is known of who holds most of the memory."""

    @property
    def kept_bytes(self) -> int:
        """The memory of answers that are kept, which has a bound of its own. Units: bytes."""

    @property
    def object_count(self) -> int:
        """How many objects of the API server are held."""


class MemoryPerObject:
    """The memory of the process for each object that it holds, without kept answers; objects count at their most.

    Args:
        holder: Who holds them.
        resident: Gives the memory that the process takes, in bytes.
    """

    def __init__(self, holder: ObjectHolder, resident: Callable[[], int] | None = None) -> None:
        self._holder = holder
        self._resident = resident or resident_bytes
        self._most = FEWEST_OBJECTS

    def __call__(self) -> float:
        """Measure it. Units: bytes."""
        self._most = max(self._most, self._holder.object_count)
        return max(LITTLE, self._resident() - self._holder.kept_bytes) / self._most


class _Mallinfo2(ctypes.Structure):
    """What glibc says of its memory, see mallinfo2(3)."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


class FreedMemory:
    """Freed memory that the C library keeps for later, which is returned to the system where it is much.

    Other libraries than glibc 2.33 and later are left to themselves.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._info = getattr(library, "mallinfo2", None)
        self._trim = getattr(library, "malloc_trim", None)
        if self._info is not None:
            self._info.restype = _Mallinfo2
        self._least = 0
        """The least that the library kept since some of it was returned, which it goes on counting."""

    @property
    def kept_bytes(self) -> int:
        """What the library keeps, what is with the system already included. Units: bytes."""
        return int(self._info().fordblks) if self._info is not None else 0

    def return_much(self) -> None:
        """Return it where it has become much more.

        Cost: 0.1 ms where nothing is to be returned, else 5 to 12 ms for 100 MiB.
        """
        kept = self.kept_bytes
        self._least = min(self._least, kept)
        if self._trim is not None and kept >= self._least + MUCH_FREED:
            self._trim(0)
            self._least = self.kept_bytes


class GarbageCollection:
    """Collects what survived the interpreter's collections of the youngest objects, then freezes the survivors."""

    def __init__(self, memory: Callable[[], float]) -> None:
        self._memory = memory
        self._number = 0
        self._seen = 0
        """How many collections of the youngest objects there were at the last look."""
        self._after_whole = 0.0
        """The memory after the last full collection; 0 while there was none."""

    def collect(self) -> None:
        """Look at survivors if they are enough, and at everything if memory has doubled."""
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
        """Look now and then, between other pieces of work, until cancelled; rarely while nothing can have survived."""
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
    """Keep garbage collections short as long as this lasts.

    Args:
        memory: Measures what grows only where something leaks, in any unit.

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
    """Look for garbage rarely as long as this lasts, because hardly any is made; what is there then stays unseen."""
    before = gc.get_threshold()
    gc.set_threshold(RARELY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.freeze()


def resident_bytes() -> int:
    """Return the memory that the process takes, 0 where the system does not say."""
    with suppress(OSError):
        return int(_STATM.read_text().split()[1]) * _PAGE_SIZE
    return 0
