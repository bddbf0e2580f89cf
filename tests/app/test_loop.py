"""The whole scheduler at work: no piece of it holds the loop, whatever happens at once.

The figures are those of `python -m bench.loop`. Here the limit is generous, because a busy machine makes everything
slower; what it finds is work that is not cut at all.
"""

from __future__ import annotations

import asyncio

import pytest

from bench.loop import Pieces, schedule

pytestmark = pytest.mark.usefixtures("others_apart")
MOST = 0.1
"""Units: seconds of the processor; the longest piece takes a tenth of it on a machine that does nothing else."""
SIZE = ("--nodes=500", "--placed=500", "--pods=100", "--policies=5", "--waiting=300")


def test_no_piece_of_work_holds_the_loop() -> None:
    for _ in range(3):
        pieces = Pieces()
        asyncio.run(schedule(SIZE, pieces))
        longest = {phase: max(taken) for phase, taken in pieces.taken.items()}
        assert len(longest) > 8
        assert sum(len(taken) for taken in pieces.taken.values()) > 1000
        if all(seconds < MOST for seconds, _ in longest.values()):
            return
    raise AssertionError(longest)
