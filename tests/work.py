"""Work counted in calls and lines of Python: the same on any machine, however busy it is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the garbage of other tests out of a measurement: its collection may call finalizers."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def calls(action: Callable[..., object], *events: str) -> int:
    """Count the functions called: those of Python and of C, or only those of the events of `sys.setprofile` named."""
    chosen, counted = frozenset(events or ("call", "c_call")), 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal counted
        counted += event in chosen

    before = sys.getprofile()
    with collector_off():
        sys.setprofile(count)
        try:
            action()
        finally:
            sys.setprofile(before)
    return counted


def lines(action: Callable[..., object]) -> int:
    """Count the lines that run."""
    counted = 0

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal counted
        counted += event == "line"
        return count

    before = sys.gettrace()
    with collector_off():
        sys.settrace(count)
        try:
            action()
        finally:
            sys.settrace(before)
    return counted
