"""When the interpreter looks for garbage: often and little, so that a look never holds the loop for long.

Nearly everything here is freed as soon as nobody holds it; only what holds itself in a circle waits for a look. A look
at everything takes 0.1 s with 5,000 nodes and 10,000 pods, and comes every few thousand pods. So what has been looked
at once is left out of later looks, each of which sees what came since the last one. Circles among what was left out are
found when the process takes twice as much memory as after the last look at everything.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

FEW: Final = (700, 4, 2)
"""After how many new objects the youngest are looked at, after how many such looks the next older ones, and so on."""
MEASURED_EVERY: Final = 16
GROWTH: Final = 2
_PAGES: Final = Path("/proc/self/statm")


@contextmanager
def short_looks(resident: Callable[[], int] | None = None) -> Iterator[None]:
    """Keep looks for garbage short as long as this lasts.

    Args:
        resident: Gives the memory of the process, in any unit; absent, what the system says.
    """
    before, looks = gc.get_threshold(), _Looks(resident or resident_pages)
    gc.freeze()
    gc.set_threshold(*FEW)
    gc.callbacks.append(looks)
    try:
        yield
    finally:
        gc.callbacks.remove(looks)
        gc.set_threshold(*before)
        gc.unfreeze()


class _Looks:
    """Hears of every look, and says what the next ones leave out."""

    def __init__(self, resident: Callable[[], int]) -> None:
        self._resident = resident
        self._number = 0
        self._after_whole = 0
        """The memory after the last look at everything; 0 while there was none."""
        self._whole = False

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if phase != "stop" or info["generation"] < len(FEW) - 1:
            return
        gc.freeze()
        self._number += 1
        if not self._whole and self._number % MEASURED_EVERY:
            return
        taken = self._resident()
        if self._whole or not self._after_whole:
            self._after_whole, self._whole = taken, False
        elif taken > GROWTH * self._after_whole:
            self._whole = True
            gc.unfreeze()


def resident_pages() -> int:
    """Give the memory that the process takes, 0 where the system does not say.

    Units: pages.
    """
    with suppress(OSError):
        return int(_PAGES.read_text().split()[1])
    return 0
