"""The present, and the ages of nodes that follow it."""

from __future__ import annotations

import gc
import random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import Aspect, Cluster
from policysched.model.objects import Node
from policysched.model.objects.meta import seconds_of
from policysched.state.tables.ages import ClusterTime, age
from tests.build import node

NOON = "2026-01-01T12:00:00Z"
AT = seconds_of(NOON) or 0.0


def born(name: str, created: str | None = NOON) -> Node:
    made = node(name)
    return replace(made, metadata=replace(made.metadata, creation_timestamp=created))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T00:01:00.500000Z", 60.5),
        ("1970-01-01T01:01:00+01:00", 60.0),
        ("1970-01-01T00:01:00", 60.0),
        ("", None),
        (None, None),
        ("yesterday", None),
    ],
)
def test_timestamps_are_seconds(text: str | None, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("later", "steps"),
    [(-100.0, 0.0), (-0.5, 0.0), (0.0, 0.0), (9.9, 0.0), (10.0, 10.0), (300.0, 300.0), (309.9, 300.0)],
)
def test_an_age_has_whole_steps_and_is_never_negative(later: float, steps: float) -> None:
    assert age(AT, AT + later) == steps
    around = Cluster()
    held = around.ages.held()
    around.set_node(born("n"))
    around.time.move(AT + later)
    assert held.data[0] == steps


def test_a_node_without_a_time_of_creation_has_no_age() -> None:
    around = Cluster()
    around.set_node(born("n", None))
    around.time.move(AT)
    assert around.ages.held().data[0] == 0.0


def noted(around: Cluster, since: int) -> dict[int, int]:
    changed = around.journal.since(since)
    assert changed is not None
    return dict(zip(changed[0].tolist(), changed[1].tolist(), strict=True))


def test_rows_whose_age_changed_are_noted_and_no_others() -> None:
    around = Cluster()
    for second in range(3):
        around.set_node(born(f"n{second}", f"2026-01-01T12:00:0{second}Z"))
    held = around.ages.held()
    around.time.move(AT)
    seen = around.journal.position
    for later, rows in ((9.0, []), (10.5, [0]), (11.9, [1]), (29.0, [0, 1, 2]), (29.5, [])):
        around.time.move(AT + later)
        assert sorted(noted(around, seen)) == rows
        assert set(noted(around, seen).values()) <= {int(Aspect.AGE)}
        seen = around.journal.position
    assert held.data[:3].tolist() == [20.0, 20.0, 20.0]
    around.time.move(AT + 5)
    assert held.data[:3].tolist() == [0.0, 0.0, 0.0]


def test_a_node_made_anew_under_its_name_is_as_old_as_it_says() -> None:
    around = Cluster()
    held = around.ages.held()
    around.set_node(born("n"))
    around.time.move(AT + 100)
    around.set_node(born("n", "2026-01-01T12:01:00Z"))
    assert held.data[0] == 40.0
    around.remove_node("n")
    assert held.data[0] == 0.0


def test_ages_that_nobody_holds_cost_nothing() -> None:
    around = Cluster()
    around.set_node(born("n"))
    held = around.ages.held()
    assert around.ages.held() is held
    del held
    gc.collect()
    seen = around.journal.position
    around.time.move(AT + 1000)
    assert around.journal.position == seen


def test_ages_kept_up_to_date_equal_ages_made_anew() -> None:
    chance = random.Random(7)
    around, now = Cluster(), AT
    held = around.ages.held()
    for _ in range(400):
        name = f"n{chance.randrange(80)}"
        if chance.random() < 0.2:
            around.remove_node(name)
        else:
            made = f"2026-01-01T12:{chance.randrange(20):02}:{chance.randrange(60):02}Z"
            around.set_node(born(name, made if chance.random() < 0.9 else None))
        now += chance.choice((0.0, 0.3, 7.0, -20.0, 100.0))
        around.time.move(now)
        created = [seconds_of(one.metadata.creation_timestamp) if one else None for one in around.nodes.nodes]
        assert held.data[: around.nodes.size].tolist() == [
            age(float("inf") if at is None else at, now) for at in created
        ]


class Bell:
    """Rings every ten seconds."""

    def __init__(self) -> None:
        self.rung: list[float] = []

    def advance(self, seconds: float) -> float:
        self.rung.append(seconds)
        return seconds + 10.0


def test_what_is_due_later_is_left_alone() -> None:
    moment, bell = ClusterTime(), Bell()
    moment.include(bell)
    for seconds in (5.0, 9.0, 10.0, 15.0, 12.0, 30.0):
        moment.move(seconds)
    assert bell.rung == [0.0, 10.0, 12.0, 30.0]
    moment.expect(31.0)
    moment.move(32.0)
    assert bell.rung[-1] == 32.0


def test_many_rows_are_noted_at_once(monkeypatch: Any) -> None:
    monkeypatch.setattr("policysched.state.tables.journal.RING", 16)
    journal = Cluster().journal
    journal.note(1, Aspect.USAGE)
    journal.note_all(np.arange(10, dtype=np.int64), Aspect.AGE)
    since = journal.since(0)
    assert since is not None
    assert since[0].tolist() == [1, *range(10)]
    journal.note_all(np.arange(40), Aspect.AGE)
    assert journal.position == 51
    assert journal.since(34) is None
    last = journal.since(35)
    assert last is not None
    assert last[0].tolist() == list(range(24, 40))
