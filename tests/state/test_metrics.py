"""Values of nodes from outside: joined by name, as long as they are fresh, for as long as somebody reads them."""

from __future__ import annotations

import gc
import math
import random

from policysched.framework import Action, Aspect, Cluster, MetricAnswer, MetricKey, Resource, Sample
from policysched.state.tables.metrics import MetricColumn
from tests.build import cluster, node

LOAD, HEAT = MetricKey("load", "node"), MetricKey("heat", "instance")
ONE, TWO = Sample(1.0, 1000.0), Sample(2.0, 1000.0)


def answer(key: MetricKey = LOAD, problem: str = "", **samples: Sample) -> MetricAnswer:
    return MetricAnswer(key, samples, problem)


def values(around: Cluster, column: MetricColumn) -> dict[str, float | None]:
    rows = around.nodes.row_of.items()
    return {name: None if math.isnan(column.data[row]) else float(column.data[row]) for name, row in rows}


def at(seconds: float, *names: str) -> Cluster:
    around = cluster(*(node(name) for name in names))
    around.time.move(seconds)
    return around


def test_values_are_joined_by_the_nodes_name() -> None:
    around = at(1000.0, "a", "b")
    column = around.metrics.column(LOAD, 60.0)
    assert values(around, column) == {"a": None, "b": None}
    around.metrics.take(answer(a=ONE, c=TWO))
    assert values(around, column) == {"a": 1.0, "b": None}
    around.set_node(node("c"))
    around.remove_node("a")
    assert values(around, column) == {"b": None, "c": 2.0}
    around.set_node(node("d"))
    assert values(around, column)["d"] is None


def test_a_column_made_late_has_the_last_answer() -> None:
    around = at(1000.0, "a")
    around.metrics.take(answer(a=ONE))
    assert values(around, around.metrics.column(LOAD, 60.0)) == {"a": 1.0}
    assert values(around, around.metrics.column(HEAT, 60.0)) == {"a": None}


def test_a_value_is_missing_once_it_is_older_than_allowed() -> None:
    around = at(1000.0, "a", "b")
    short, long = around.metrics.column(LOAD, 30.0), around.metrics.column(LOAD, 90.0)
    around.metrics.take(answer(a=ONE, b=Sample(2.0, 1010.0)))
    for seconds, a_short, b_short, a_long in (
        (1030.0, 1.0, 2.0, 1.0),
        (1030.5, None, 2.0, 1.0),
        (1041.0, None, None, 1.0),
    ):
        around.time.move(seconds)
        assert values(around, short) == {"a": a_short, "b": b_short}
        assert values(around, long) == {"a": a_long, "b": 2.0}
    around.time.move(1020.0)
    assert values(around, short) == {"a": 1.0, "b": 2.0}


def test_a_new_node_does_not_get_a_value_that_is_too_old() -> None:
    around = at(2000.0)
    column = around.metrics.column(LOAD, 30.0)
    around.metrics.take(answer(a=ONE))
    around.set_node(node("a"))
    assert values(around, column) == {"a": None}


def test_without_an_answer_the_last_values_stay_and_age() -> None:
    around = at(1000.0, "a")
    column = around.metrics.column(LOAD, 30.0)
    around.metrics.take(answer(a=ONE))
    assert around.metrics.take(MetricAnswer(LOAD, None, "no answer")).nothing
    assert around.metrics.problems == {LOAD: "no answer"}
    assert values(around, column) == {"a": 1.0}
    around.time.move(1031.0)
    assert values(around, column) == {"a": None}
    around.metrics.take(answer(a=Sample(3.0, 1031.0)))
    assert around.metrics.problems == {}
    assert values(around, column) == {"a": 3.0}


def test_a_node_that_an_answer_leaves_out_has_no_value_any_more() -> None:
    around = at(1000.0, "a", "b")
    column = around.metrics.column(LOAD, 30.0)
    around.metrics.take(answer(a=ONE, b=TWO))
    around.metrics.take(answer(b=TWO))
    assert values(around, column) == {"a": None, "b": 2.0}


def test_only_values_that_differ_are_noted_and_told() -> None:
    around = at(1000.0, "a", "b", "c")
    column = around.metrics.column(LOAD, 30.0)
    change = around.metrics.take(answer(a=ONE, b=TWO))
    assert (change.resource, change.action, change.metric) == (Resource.METRICS, Action.UPDATE_OTHER, LOAD)
    seen = around.journal.position
    again = around.metrics.take(answer(a=Sample(1.0, 1010.0), b=TWO))
    assert (again.nothing, around.journal.position) == (True, seen)
    around.metrics.take(answer(a=ONE, b=Sample(7.0, 1000.0)))
    changed = around.journal.since(seen)
    assert changed is not None
    assert changed[0].tolist() == [around.nodes.row_of["b"]]
    assert changed[1].tolist() == [int(Aspect.METRICS)]
    assert around.metrics.take(answer(HEAT, a=ONE)).nothing
    assert values(around, column) == {"a": 1.0, "b": 7.0, "c": None}


def test_a_value_that_stays_the_same_stays_fresh() -> None:
    around = at(1000.0, "a")
    column = around.metrics.column(LOAD, 30.0)
    for now in range(1000, 1200, 20):
        around.time.move(float(now))
        around.metrics.take(answer(a=Sample(1.0, float(now))))
        around.time.move(now + 19.0)
        assert values(around, column) == {"a": 1.0}
    around.time.move(1211.0)
    assert values(around, column) == {"a": None}


def test_columns_nobody_holds_go_and_answers_nobody_wants_are_forgotten() -> None:
    around = at(1000.0, "a")
    column = around.metrics.column(LOAD, 30.0)
    assert around.metrics.column(LOAD, 30.0) is column
    around.metrics.take(answer(a=ONE, problem="two series for node a"))
    del column
    gc.collect()
    seen = around.journal.position
    around.metrics.take(answer(a=TWO, problem="two series for node a"))
    around.time.move(5000.0)
    assert around.journal.position == seen
    around.metrics.keep({HEAT})
    assert around.metrics.problems == {}
    around.time.move(1000.0)
    assert values(around, around.metrics.column(LOAD, 30.0)) == {"a": None}


def made_anew(around: Cluster, now: float) -> Cluster:
    fresh = Cluster(around.strings)
    fresh.time.move(now)
    fresh.metrics._samples = around.metrics._samples
    for one in around.nodes.nodes:
        if one is not None:
            fresh.set_node(one)
    return fresh


def test_columns_kept_up_to_date_equal_columns_made_anew() -> None:
    chance = random.Random(3)
    around, now = at(1000.0), 1000.0
    kept = [around.metrics.column(LOAD, 20.0), around.metrics.column(LOAD, 50.0), around.metrics.column(HEAT, 20.0)]
    for _ in range(500):
        name = f"n{chance.randrange(90)}"
        match chance.randrange(4):
            case 0:
                around.set_node(node(name))
            case 1:
                around.remove_node(name)
            case 2:
                key = chance.choice((LOAD, HEAT))
                names = [f"n{number}" for number in range(90) if chance.random() < 0.7]
                samples = {one: Sample(float(chance.randrange(5)), now - chance.randrange(40)) for one in names}
                around.metrics.take(MetricAnswer(key, samples if chance.random() < 0.9 else None))
            case _:
                now += chance.choice((0.5, 3.0, 10.0, -5.0))
                around.time.move(now)
        fresh = made_anew(around, now)
        anew = [fresh.metrics.column(LOAD, 20.0), fresh.metrics.column(LOAD, 50.0), fresh.metrics.column(HEAT, 20.0)]
        assert [values(around, column) for column in kept] == [values(fresh, column) for column in anew]
