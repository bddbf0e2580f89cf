"""Half a simulated hour of a small cluster with everything on: nothing is lost, bound twice or left."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from bench.soak.clock import SimulatedClock, SimulatedLoop
from bench.soak.figures import as_markdown, growth, spread_of
from bench.soak.run import Options, play

SHORT = Options(nodes=60, hours=0.5, takeover_every=0.2, minutes=10, seed=7)


@pytest.fixture(autouse=True)
def nothing_logged() -> Iterator[None]:
    """Disable logging, as captured records would keep the objects of an earlier leader alive."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def _played(options: Options) -> dict[str, Any]:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(play(options, lambda _: None))


def test_a_short_day_with_everything_on_has_no_problem() -> None:
    found = _played(SHORT)
    assert found["problems"] == []
    total: Counter[str] = Counter()
    for hour in found["hours"]:
        total.update(hour["counts"])
    for name in ("bound with devices", "groups placed", "evicted", "edits", "node changes", "retried"):
        assert total[name] > 0, name
    assert total["bound"] > 100
    assert [one["kind"] for one in found["takeovers"]] == ["orderly", "crash"]
    assert found["hours"][0]["attempts"]["p50"] > 0
    assert "problem: none" in as_markdown(found)


def test_idle_time_is_skipped() -> None:
    async def waited() -> float:
        clock = SimulatedClock(asyncio.get_running_loop())
        before, began = clock.now(), clock.monotonic()
        await asyncio.sleep(86_400)
        assert 86_400 <= (clock.now() - before).total_seconds() < 86_410
        return clock.monotonic() - began

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        assert 86_400 <= runner.run(waited()) < 86_410


def test_growth_compares_six_hours_with_those_half_a_day_earlier() -> None:
    hours = [{"mib": size, "blocks": 2 * size} for size in (50.0, 100.0, 90.0, 110.0) for _ in range(6)]
    assert growth(hours) == pytest.approx({"mib": 1.1, "blocks": 1.1})
    assert growth(hours[1:]) == {}


def test_quantiles_of_attempts() -> None:
    assert spread_of([]) == {"count": 0}
    found = spread_of([float(number) for number in range(1, 1001)])
    assert found == {"count": 1000, "p50": 500.0, "p99": 990.0, "p99.9": 999.0, "worst": 1000.0}
