"""What is left open: sessions and connections that nobody closed, as the garbage collector finds them."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """Fail where something made meanwhile is not closed at the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # what others left open is not said here
        gc.collect()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    left = [str(one.message) for one in said if issubclass(one.category, ResourceWarning)]
    assert not left, f"left open: {left}"
