"""Freed memory goes back to the system."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from policysched.app.running.freed_memory import MUCH_FREED, FreedMemory, return_freed_memory


def resident_bytes() -> int:
    """The memory that the process takes."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * resource.getpagesize()


pytestmark = pytest.mark.usefixtures("others_apart")


def many_arrays(number: int) -> list[bytearray]:
    """Arrays that the C library keeps as they are freed: each is smaller than what it maps by itself."""
    return [bytearray(b"x" * 65_000) for _ in range(number)]


def freed_in_the_midst(size: int) -> tuple[list[bytearray], int]:
    """Free so many bytes that lie below others; return those, and what the process took before."""
    held = many_arrays(size // 65_000)
    above = many_arrays(10)
    before = resident_bytes()
    del held
    return above, before


def test_much_freed_memory_is_returned_to_the_system() -> None:
    freed = FreedMemory()
    freed.return_much()
    above, before = freed_in_the_midst(4 * MUCH_FREED)
    assert freed.kept_bytes >= 3 * MUCH_FREED
    freed.return_much()
    assert resident_bytes() < before - 3 * MUCH_FREED, len(above)
    asked: list[int] = []
    freed._trim = asked.append
    freed.return_much()
    assert not asked, "nothing more is to be returned"
    more = many_arrays(4 * MUCH_FREED // 65_000)
    freed.return_much()
    del more
    freed.return_much()
    assert asked == [0]


async def test_freed_memory_is_returned_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    returned = asyncio.Event()
    monkeypatch.setattr(FreedMemory, "return_much", lambda _: returned.set())
    monkeypatch.setattr("policysched.app.running.freed_memory.RETURNED_EVERY", 0.02)
    returning = asyncio.create_task(return_freed_memory())
    await asyncio.wait_for(returned.wait(), 10)
    returning.cancel()
