"""When time changes what a program says: exact moments, and those at which it is looked at again."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from policysched.language import Environment, Input, Program, Unit, compile_expression, interpret
from policysched.language.evaluation.time_transitions import next_transition
from tests.language.frames import TableFrame

NOON = datetime(2025, 1, 6, 12, 0, tzinfo=UTC).timestamp()


def program(text: str) -> Program:
    compiled = compile_expression(text, Environment("let", metrics={"load": Unit.NUMBER}))
    assert compiled.program is not None, compiled.diagnostics
    return compiled.program


def ages(*of_nodes: float, pod: float = 0.0) -> Any:
    return lambda item: of_nodes if item.root == "node" else pod


def wait(text: str, *of_nodes: float, pod: float = 0.0, now: float = NOON) -> float | None:
    moment = next_transition(program(text).root, ages(*of_nodes, pod=pod), now)
    return None if moment is None else moment - now


@pytest.mark.parametrize(
    "text",
    ["node.ready", "pod.priority > 3", "count(node.ready) > 3", "1 < 2", "node.pods.any(true)", "metrics.load < 1"],
)
def test_what_reads_no_time_never_flips(text: str) -> None:
    assert wait(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("pod.age > 5min", 210),
        ("pod.age >= 5min", 200),
        ("pod.age < 5min", 200),
        ("pod.age <= 5min", 210),
        ("pod.age == 5min", 200),
        ("pod.age != 5min", 200),
        ("5min < pod.age", 210),
        ("5min <= pod.age", 200),
        ("5min > pod.age", 200),
        ("5min >= pod.age", 210),
        ("5min == pod.age", 200),
        ("pod.age >= 301s", 210),
        ("pod.age > 301s", 210),
        ("pod.age > 2 * 150s + 1s", 210),
        ("pod.age >= 95s", None),
        ("pod.age > 95s", None),
        ("pod.age > 100s", 10),
        ("pod.age <= 100s", 10),
        ("pod.age == 100s", 10),
        ("pod.age == 105s", None),
        ("pod.age != 90s", None),
        ("pod.age >= 0", None),
        ("pod.age > -5min", None),
        ("pod.age > 5min and pod.age < 4min", 140),
        ("not (pod.age > 5min or node.ready)", 210),
        ("if(pod.age > 5min, 1, 2) > 1", 210),
    ],
)
def test_an_age_flips_where_its_steps_pass_a_constant(text: str, seconds: float | None) -> None:
    assert wait(text, pod=100.0) == seconds


def test_the_first_of_many_ages_is_the_next() -> None:
    assert wait("node.age > 5min", 10.0, 290.0, 250.0, 400.0) == 20.0
    assert wait("node.age > 5min", 400.0) is None
    assert wait("node.age > 5min") is None
    assert wait("node.age >= 5min", 299.5) == 0.5
    assert wait("node.age >= 10s", -3600.0) == 3610.0
    assert wait("node.age >= 5min", -math.inf, math.nan, math.inf) is None
    assert wait("node.age > 5min and pod.age > 1min", 290.0, pod=55.0) == 15.0
    assert wait("count(node.age > 5min) by node.zone > 2", 290.0) == 20.0
    assert wait("node.pods.any(node.age > 5min)", 290.0) == 20.0


@pytest.mark.parametrize(
    "text",
    [
        "scale(node.age, 0, 1h)",
        "node.age + 1h > 2h",
        "node.age > pod.age",
        "avg(node.age) > 1h",
        "node.age in [1h, 2h]",
        "pod.age > number(pod.labels[\"wait\"]) * 1s",
        "node.pods.count(peer.requests.cpu > 1 and pod.age / 1h > 1)",
    ],
)  # fmt: skip
def test_other_uses_of_ages_are_looked_at_again(text: str) -> None:
    assert wait(text, 100.0) == 30.0


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ('clock("22:00", "06:00")', 10),
        ('not clock("22:00", "06:00")', 10),
        ('clock("09:00", "17:00")', 5),
        ('clock("12:00", "13:00")', 1),
        ('clock("11:00", "12:00")', 23),
        ('clock("22:00", "06:00", "Europe/Berlin")', 9),
        ('clock("22:00", "06:00") and node.ready', 10),
        ('clock("22:00", "06:00") and weekday() == "tue"', 12),
        ('clock("22:00", "06:00") and weekday() == "mon"', 10),
        ("hour()", 1),
        ("hour() >= 15", 3),
        ("hour() < 12", 12),
        ("hour() == 12", 1),
        ('hour("Asia/Kolkata")', 0.5),
        ("weekday()", 12),
        ('weekday() == "wed"', 36),
        ('weekday() in ["sat", "sun"]', 108),
        ('weekday("Asia/Tokyo") == "tue"', 3),
        ('node.labels[weekday()] == "open"', 12),
        ('if(clock("22:00", "06:00"), 1, 2) > node.free.pods', 10),
        ('node.pods.any(peer.labels["day"] == weekday())', 12),
        ("sum(if(hour() > 20, node.free.cpu, 0)) > 1", 9),
        ("hour() > 14 or pod.age > 5h", 3),
    ],
)
def test_a_clock_flips_at_the_hour(text: str, hours: float) -> None:
    assert wait(text) == hours * 3600


def test_a_moment_between_two_seconds_flips_at_a_whole_one() -> None:
    assert next_transition(program("hour()").root, ages(), NOON + 0.123456) == NOON + 3600
    assert next_transition(program('clock("12:00", "13:00")').root, ages(), NOON - 0.25) == NOON


def test_what_never_changes_is_looked_at_again_after_days() -> None:
    never = wait("hour() == 30")
    assert never is not None
    assert 7 * 86400 < never < 10 * 86400


@pytest.mark.parametrize(
    ("zone", "at"),
    [
        ("Europe/Berlin", "2025-03-30T00:10"),
        ("Europe/Berlin", "2025-10-25T23:10"),
        ("America/New_York", "2025-03-09T06:10"),
        ("Australia/Lord_Howe", "2025-04-05T14:10"),
        ("Australia/Lord_Howe", "2025-10-04T15:10"),
        ("Asia/Kathmandu", "2025-01-06T12:10"),
        ("Africa/Casablanca", "2025-02-23T01:10"),
    ],
)
@pytest.mark.parametrize("text", ['hour("{}")', 'weekday("{}")', 'clock("02:15", "02:45", "{}")'])
def test_a_flip_is_exact_where_clocks_are_put_forward_or_back(zone: str, at: str, text: str) -> None:
    now = datetime.fromisoformat(at).replace(tzinfo=UTC)
    compiled = program(text.format(zone))
    moment = next_transition(compiled.root, ages(), now.timestamp())
    assert moment is not None

    def value(when: datetime) -> Any:
        return interpret(compiled, TableFrame([{}], now=when.timestamp()).at(0))

    minute = now
    while value(minute) == value(now):
        minute += timedelta(minutes=1)
    minute = minute.replace(second=0)
    assert datetime.fromtimestamp(moment, UTC) == minute, minute.astimezone(ZoneInfo(zone))


def test_a_metric_called_age_is_none() -> None:
    compiled = compile_expression("metrics.age > 5min", Environment("let", metrics={"age": Unit.DURATION}))
    assert compiled.program is not None
    assert next_transition(compiled.program.root, ages(1.0), NOON) is None


def test_ages_are_asked_for_by_their_input() -> None:
    asked: list[Input] = []

    def of(item: Input) -> Any:
        asked.append(item)
        return 0.0

    next_transition(program("node.age > 5min or pod.age > 1min").root, of, NOON)
    assert {item.text for item in asked} == {"node.age", "pod.age"}
