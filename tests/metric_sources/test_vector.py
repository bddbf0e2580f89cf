"""Which values an answer gives, and what is said of the series that give none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policysched.framework import MetricKey, Sample
from policysched.framework.client import LEAST_UNKNOWN
from policysched.metric_sources.problems import READ, QueryError, one_line
from policysched.metric_sources.vector import (
    LARGEST_SERIES,
    MOST_LABELS,
    SLICE,
    Join,
    first_warning,
    open_envelope,
    read_series,
)
from tests.metric_sources.fake_prometheus import series
from tests.metric_sources.following import LOAD, Counted
from tests.turns import turns_of_the_loop

NOW = 1_790_000_000.0


def body(*items: Any, kind: str = "vector", **beside: Any) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": list(items)}, **beside}).encode()


async def joined(data: bytes, key: MetricKey = LOAD, counted: Counted | None = None) -> Any:
    envelope = open_envelope(data)
    assert envelope is not None
    join = Join(key, NOW)
    async for part in read_series(envelope):
        join.take(part)
    return join.answer((counted or Counted()).counters, first_warning(envelope))


async def test_each_node_gets_the_value_of_its_series() -> None:
    found = await joined(body(series("n1", 0.25, NOW - 3), series("n2", "1e3", NOW - 2.5, job="x")))
    assert found.samples == {"n1": Sample(0.25, NOW - 3), "n2": Sample(1000.0, NOW - 2.5)}
    assert found.problem == ""


async def test_the_label_is_the_one_the_policy_names() -> None:
    data = body(series("a", 1, NOW, instance="n1"), series("b", 2, NOW, instance="n2"))
    found = await joined(data, MetricKey("load", "instance"))
    assert {node: sample.value for node, sample in found.samples.items()} == {"n1": 1.0, "n2": 2.0}


async def test_a_port_behind_the_name_is_part_of_it() -> None:
    found = await joined(body(series("n1:9100", 1, NOW)))
    assert set(found.samples) == {"n1:9100"}


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "inf", "nan", "", "a lot", "0x10"])
async def test_what_is_no_finite_number_is_missing(value: str) -> None:
    counted = Counted()
    found = await joined(body(series("n1", value, NOW), series("n2", 3, NOW)), counted=counted)
    assert set(found.samples) == {"n2"}
    assert counted.dropped() == {"not_finite": 1}

    assert found.problem == ""


@pytest.mark.parametrize("values", [["NaN"], ["+Inf", "-Inf", "nan"], ["a lot", "NaN"]])
async def test_values_that_are_all_no_finite_numbers_are_a_problem(values: list[str]) -> None:
    found = await joined(body(*(series(f"n{number}", value, NOW) for number, value in enumerate(values))))
    assert (found.samples, found.problem) == ({}, "no value is a finite number")


async def test_a_histogram_is_missing() -> None:
    found = await joined(body({"metric": {"node": "n1"}, "histogram": [NOW, {"count": "3"}]}))
    assert (found.samples, found.problem) == ({}, "no value is a finite number")


async def test_two_series_of_a_node_leave_it_without_a_value() -> None:
    counted = Counted()
    items = [series("n2", 1, NOW, cpu="0"), series("n1", 1, NOW, cpu="0"), series("n1", 2, NOW, cpu="1")]
    found = await joined(body(*items), counted=counted)
    assert set(found.samples) == {"n2"}
    assert found.problem == "two series for node n1; aggregate or select in the query"
    assert counted.dropped() == {"duplicate": 2}


async def test_many_doubled_nodes_are_told_as_one() -> None:
    found = await joined(body(*(series(f"n{number % 4}", 1, NOW) for number in range(12))))
    assert found.samples == {}
    assert found.problem.startswith("two series for node n0 and 3 more; ")


async def test_a_doubled_node_is_missing_also_where_one_value_is_none() -> None:
    found = await joined(body(series("n1", "NaN", NOW), series("n1", 2, NOW)))
    assert found.samples == {}
    assert "two series for node n1" in found.problem


async def test_series_without_the_label_say_which_labels_they_have() -> None:
    counted = Counted()
    data = body(series(None, 1, NOW, __name__="up", instance="a:1", job="x"), series("", 1, NOW, job="y"))
    found = await joined(data, counted=counted)
    assert found.samples == {}
    assert found.problem == (
        'the series have no label "node", they have instance, job, node; set nodeLabel, or keep the label with by (…)'
    )
    assert counted.dropped() == {"no_label": 2}


async def test_some_series_without_the_label_leave_the_others() -> None:
    found = await joined(body(series("n1", 1, NOW), series(None, 1, NOW)))
    assert set(found.samples) == {"n1"}
    assert found.problem.startswith('some series have no label "node", they have no labels at all; ')


async def test_a_server_that_is_ahead_does_not_make_values_last_longer() -> None:
    found = await joined(body(series("n1", 1, NOW + 3600)))
    assert found.samples == {"n1": Sample(1.0, NOW)}
    assert found.problem == ""


async def test_old_values_keep_their_time_and_are_told() -> None:
    found = await joined(body(series("n1", 1, NOW - 61)))
    assert found.samples == {"n1": Sample(1.0, NOW - 61)}
    assert "more than a minute old" in found.problem
    assert (await joined(body(series("n1", 1, NOW - 59)))).problem == ""


async def test_an_empty_vector_is_an_answer() -> None:
    found = await joined(body())
    assert (found.samples, found.problem) == ({}, "")


async def test_warnings_of_the_server_are_passed_on() -> None:
    found = await joined(body(series("n1", 1, NOW), warnings=["one store\nis away", "another"]))
    assert set(found.samples) == {"n1"}
    assert found.problem == "the server warns: one store is away"


async def test_large_answer_is_read_in_slices() -> None:
    items = [series(f"n{number}", number, NOW, job="a", text='"},{"metric":') for number in range(10_000)]
    data = body(*items)
    for text in (data, data.replace(b", ", b","), data.replace(b"}, {", b"}\n,\t{")):
        envelope = open_envelope(text)
        assert envelope is not None
        join = Join(LOAD, NOW)
        parts = [part async for part in read_series(envelope)]
        assert max(map(len, parts)) <= SLICE // 60
        assert len(parts) >= len(text) // SLICE // 2
        for part in parts:
            join.take(part)
        assert len(join.answer(Counted().counters).samples or ()) == 10_000


async def test_large_answer_gives_the_loop_its_turn() -> None:
    data = body(*(series(f"n{number}", number, NOW, job="a") for number in range(20_000)))
    async with turns_of_the_loop() as turns:
        found = await joined(data)
    assert len(found.samples) == 20_000
    assert turns.count >= len(data) // SLICE // 2


@pytest.mark.parametrize(("nodes", "kept"), [(3, LEAST_UNKNOWN), (600, 1200)])
async def test_of_names_that_are_no_nodes_some_are_kept(nodes: int, kept: int) -> None:
    counted = Counted()
    known = [f"n{number}" for number in range(nodes)]
    items = [series(f"x{number}", 1, NOW) for number in range(2_000)]
    envelope = open_envelope(body(*items, *(series(node, 2, NOW) for node in known), series("x1999", 3, NOW)))
    assert envelope is not None
    join = Join(LOAD, NOW, known)
    async for part in read_series(envelope):
        join.take(part)
    found = join.answer(counted.counters)
    assert found.samples is not None
    assert len(found.samples) == nodes + kept
    assert {found.samples[node].value for node in known} == {2.0}
    assert found.problem == ""
    assert counted.dropped() == {"no_node": 2_001 - kept}


def beside(count: int) -> list[dict[str, Any]]:
    """Series with the value first, as other servers may write them."""
    return [{"value": [NOW, "1"], "metric": {"node": f"n{index}", "filling": "x" * 100}} for index in range(count)]


@pytest.mark.parametrize("items", [beside(6000), [series(f"n{index}", 1, NOW, job="x" * 200) for index in range(4000)]])
async def test_slices_are_small_whatever_comes_first_in_a_series(items: list[dict[str, Any]]) -> None:
    envelope = open_envelope(body(*items))
    assert envelope is not None
    parts = [part async for part in read_series(envelope)]
    assert len(parts) >= len(body(*items)) // (2 * SLICE)
    assert sum(map(len, parts)) == len(items)


async def test_a_series_that_is_too_long_is_refused() -> None:
    labels = {f"l{index}": "x" * 50 for index in range(10_000)}
    long = body(series("n1", 1, NOW), series("n2", 1, NOW, **labels), series("n3", 1, NOW))
    with pytest.raises(QueryError, match=f"a series of the answer has more than {LARGEST_SERIES >> 10} KiB"):
        await joined(long)


async def test_labels_without_end_are_told_in_part() -> None:
    items = [{"metric": {f"l{s}_{n}": "v" for n in range(2000)}, "value": [NOW, "1"]} for s in range(20)]
    envelope = open_envelope(body(*items))
    assert envelope is not None
    join = Join(LOAD, NOW)
    async for part in read_series(envelope):
        join.take(part)
    assert len(join._labels) <= 20 * MOST_LABELS
    assert 'no label "node", they have l0_0, ' in join.answer(Counted().counters).problem


@pytest.mark.parametrize(
    ("warnings", "problem"),
    [
        (["a\n" * 100], "the server warns: a a a"),
        (["x"] * 100_000, "the server returned more than 64 KiB of warnings"),
        ([7], "the server returned warnings that cannot be read"),
        ([], ""),
    ],
)
def test_warnings_are_read_in_part(warnings: list[Any], problem: str) -> None:
    envelope = open_envelope(body(warnings=warnings))
    assert envelope is not None
    assert first_warning(envelope)[: len(problem)] == problem
    assert bool(first_warning(envelope)) == bool(problem)


async def test_a_number_of_a_million_digits_is_none() -> None:
    assert (await joined(body(series("n1", "0." + "7" * 200_000, NOW)))).samples == {}


def test_of_a_long_text_only_the_beginning_is_looked_at() -> None:
    assert one_line(" " * READ + "x") == ""
    assert one_line("a " * READ).startswith("a a a")
