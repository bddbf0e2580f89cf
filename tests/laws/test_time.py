"""Time changes nothing before the moment that was foretold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policysched.language import Input
from policysched.language.evaluation.time_transitions import next_transition
from tests.language.frames import TableFrame
from tests.laws.evaluating import all_rows, compiled
from tests.laws.examples import examples
from tests.strategies import ZONES, conditions
from tests.worlds import MOMENTS, clusters

FEW = examples(60)
LIMITS = ("0", "5min", "95s", "1h", "10s", "-1h", "2d")
AGES = st.tuples(
    st.sampled_from(("node.age", "pod.age")),
    st.sampled_from(("<", "<=", ">", ">=", "==", "!=")),
    st.sampled_from(LIMITS),
).map(" ".join)
TIMES = st.tuples(st.integers(0, 23), st.integers(0, 59)).map(lambda two: f"{two[0]:02}:{two[1]:02}")
SPANS = (
    st.tuples(TIMES, TIMES, st.sampled_from(ZONES))
    .filter(lambda three: three[0] != three[1])
    .map(lambda three: f'clock("{three[0]}", "{three[1]}", "{three[2]}")')
)
HOURS = st.tuples(st.sampled_from(ZONES), st.integers(0, 24)).map(lambda two: f'hour("{two[0]}") >= {two[1]}')
DAYS = st.sampled_from(ZONES).map(lambda zone: f'weekday("{zone}") in ["sat", "mon"]')
# Ages that are compared with anything but a constant are looked at every half minute, whatever they do meanwhile.
OTHERS = conditions(2).filter(lambda text: ".age" not in text)
TIMED = st.lists(st.one_of(AGES, SPANS, HOURS, DAYS, OTHERS), min_size=1, max_size=3).map(
    lambda parts: " and ".join(f"({part})" for part in parts)
)


@dataclass
class Times:
    """When the nodes of a cluster and the pod were created."""

    frame: TableFrame
    created: list[float]
    pod: float

    def ages(self, item: Input) -> list[float]:
        return [self.frame.now - at for at in (self.created if item.root == "node" else [self.pod])]

    def at(self, now: float) -> TableFrame:
        table = [
            {**row, "node.age": _stepped(now - at)} for row, at in zip(self.frame.table, self.created, strict=True)
        ]
        scalars = {**self.frame.scalars, "pod.age": _stepped(now - self.pod)}
        return TableFrame(table, scalars, self.frame.strings, peers=self.frame.peers, now=now)


def _stepped(age: float) -> float:
    return max(math.floor(age / 10) * 10.0, 0.0)


@FEW
@given(st.one_of(TIMED.map(str), OTHERS), clusters(most=3), st.data())
def test_nothing_changes_before_the_moment_that_was_foretold(text: str, frame: TableFrame, data: Any) -> None:
    program = compiled(text)
    age = st.floats(-3600, 200_000)
    created = [frame.now - data.draw(age) for _ in range(frame.rows)]
    times = Times(frame, created, frame.now - data.draw(age))
    flip = next_transition(program.root, times.ages, frame.now)
    assert flip is None or flip > frame.now
    until = min(flip or math.inf, frame.now + 30 * 86400)
    before = all_rows(program, times.at(frame.now))
    moments = [frame.now + (until - frame.now) * part for part in (0.001, 0.3, 0.5, 0.9)]
    for moment in (*moments, math.nextafter(until, 0) - 0.001):
        assert moment <= frame.now or all_rows(program, times.at(moment)) == before


@FEW
@given(st.one_of(AGES, SPANS, DAYS), MOMENTS, st.floats(-3600, 200_000))
def test_the_moment_that_was_foretold_changes_something(text: str, now: float, age: float) -> None:
    program = compiled(text)
    times = Times(TableFrame([{}], now=now), [now - age], now - age)
    flip = next_transition(program.root, times.ages, now)
    if flip is not None:
        before, after = times.at(flip - 0.001), times.at(flip + 0.001)
        assert all_rows(program, before) != all_rows(program, after)
