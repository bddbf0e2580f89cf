"""`--now`: dry-run, plan and why decide at a given time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from policysched.app.clock import SystemClock
from policysched.app.dry_run.metrics import measuring
from policysched.app.dry_run.now import read_now
from policysched.app.running.metric_options import MetricOptions
from policysched.framework import MetricKey
from tests.cli.conftest import Command, Write
from tests.cli.test_usage import NODE, POD
from tests.metric_sources.fake_prometheus import fake_prometheus, nodes

NIGHT = """apiVersion: policysched.io/v1beta1
kind: SchedulingPolicy
metadata: {name: night}
spec: {filters: [{name: at-night, require: 'hour() >= 22 or hour() < 6'}]}
"""
SOURCES = ("--cluster", "cluster.yaml", "--policy", "night.yaml", "-o", "json")
ASKING = {"dry-run": ("--pod", "pod.yaml"), "why": ("web",), "plan": ()}


@pytest.fixture(autouse=True)
def files(write: Write) -> None:
    write("cluster.yaml", f"{NODE}---\n{POD}")
    write("pod.yaml", POD)
    write("night.yaml", NIGHT)


@pytest.mark.parametrize(
    ("now", "is_night"),
    [
        ("23:00", True),
        ("6:00", False),
        ("12:30", False),
        ("2026-01-05T23:00:00Z", True),
        ("2026-01-05T23:00:00+12:00", False),
        ("2026-01-05T23:00", True),
    ],
)
@pytest.mark.parametrize("name", ASKING)
def test_the_given_time_decides(command: Command, name: str, now: str, is_night: bool) -> None:
    done = command(name, *ASKING[name], *SOURCES, "--now", now)
    value = done.value
    found = (
        value.get("result") == "Scheduled"
        or value.get("state", "Unschedulable") != "Unschedulable"
        or (name == "plan" and not value.get("changes"))
    )
    assert found is is_night, done.value


@pytest.mark.parametrize("now", ["noon", "24:00", "2026-13-01T00:00:00Z", "", "0000-01-01T00:00:00Z"])
@pytest.mark.parametrize("name", ASKING)
def test_what_is_no_time_is_refused(command: Command, name: str, now: str) -> None:
    done = command(name, *ASKING[name], *SOURCES, "--now", now)
    written = "write a time such as 2026-01-05T23:00:00+01:00, or 23:00 for today in UTC"
    assert (done.code, done.problem) == (2, f'error: --now "{now}" is not a time; {written}\n')


def test_hour_and_minute_are_of_today_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda _: datetime.fromisoformat("2026-03-01T01:30:00+05:00"))
    assert read_now("7:05") == datetime(2026, 2, 28, 7, 5, tzinfo=UTC)
    assert read_now(None) is None


async def test_values_of_a_server_are_as_old_at_another_time() -> None:
    async with fake_prometheus() as fake:
        fake.otherwise = nodes(n1=0.9)
        measured = measuring(MetricOptions(url=fake.url))
        assert measured is not None
        night = datetime(2040, 1, 1, 23, tzinfo=UTC).timestamp()
        [answer] = await asyncio.to_thread(lambda: list(measured({MetricKey("up", "node"): frozenset({"up"})}, night)))
    assert answer.samples is not None
    assert 0 <= night - answer.samples["n1"].at < 60
