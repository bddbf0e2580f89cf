"""Metrics wired to a scheduler: what is asked for, what reaches the columns, and what statuses have to say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from policysched.app.clock import SystemClock
from policysched.app.running.metric_clients import make_source
from policysched.app.running.metric_options import MetricOptions, read_interval, wanted_by
from policysched.app.running.node_metrics import MetricFeed
from policysched.errors import UsageError
from policysched.framework import MetricAnswer, MetricKey, MetricSink, Sample, Wanted
from policysched.metric_sources import INTERVAL
from policysched.metric_sources.counters import SourceCounters
from policysched.metric_sources.file import FileSource
from policysched.metric_sources.no_source import NO_SOURCE, NoSource
from policysched.metric_sources.prometheus import PrometheusSource
from policysched.rules.policy_set.policy_set import PolicySet
from tests.build import node
from tests.metric_sources.following import running
from tests.rules.build import compiled
from tests.schedule.stand import Stand

LOAD = MetricKey("up", "node")


def policy(of: str = "p", require: str = "metrics.load < 1", **metric: str) -> Any:
    declared = {"name": "load", "query": "up", **metric}
    return compiled(name=of, filters=[{"name": "r", "require": require}], metrics=[declared])


class Told:
    """A source that gives what a test tells it to."""

    def __init__(self) -> None:
        self.wanted: Wanted = {}
        self.slow = False

    def follow(self, wanted: Wanted) -> None:
        self.wanted = wanted

    async def settled(self) -> None:
        if self.slow:
            await asyncio.sleep(60)

    async def run(self, sink: MetricSink, nodes: Collection[str]) -> None:
        self.say, self.nodes = sink, nodes
        await asyncio.sleep(60)


class Fed:
    """A scheduler with a feed, and how often there was news."""

    def __init__(self, *nodes: str, interval: float = 15.0) -> None:
        self.stand = Stand()
        self.source = Told()
        self.news = 0
        self.feed = MetricFeed(self.source, self.stand.scheduler, interval, self._count, self.stand.clock)
        for name in nodes:
            self.stand.scheduler.set_node(node(name))

    def _count(self) -> None:
        self.news += 1

    def use(self, *policies: Any) -> None:
        self.feed.use(PolicySet.of(policies))

    def say(self, samples: dict[str, float] | None, problem: str = "", key: MetricKey = LOAD) -> None:
        at = self.stand.clock.now().timestamp()
        told = None if samples is None else {name: Sample(value, at) for name, value in samples.items()}
        self.feed._take(MetricAnswer(key, told, problem))

    @property
    def problem(self) -> str:
        return self.stand.scheduler.cluster.metrics.problems.get(LOAD, "")


def test_what_policies_read_is_wanted_under_their_names() -> None:
    busy = policy("busy")
    same = policy("same", require="metrics.cpu < 1", name="cpu")
    assert wanted_by([busy, same]) == {LOAD: {"load", "busy/load", "cpu", "same/cpu"}}


def test_what_is_declared_only_is_not_wanted() -> None:
    assert wanted_by([policy(require="node.ready")]) == {}


def test_another_label_is_another_metric() -> None:
    assert set(wanted_by([policy("a"), policy("b", nodeLabel="host")])) == {LOAD, MetricKey("up", "host")}


async def test_the_policies_in_force_are_followed_and_others_forgotten() -> None:
    fed = Fed("n1")
    fed.use(policy())
    assert set(fed.source.wanted) == {LOAD}
    fed.say(None, "down")
    assert fed.problem == "down"
    fed.use()
    assert fed.source.wanted == {}
    assert fed.problem == ""


async def test_a_metric_is_as_old_as_its_last_answer() -> None:
    fed = Fed("n1")
    fed.use(policy("busy"))
    fed.stand.clock.at += 30
    assert fed.feed.ages() == {"busy/load": 30}
    fed.say({"n1": 0.5})
    fed.stand.clock.at += 5
    fed.say(None, "down")
    assert fed.feed.ages() == {"busy/load": 5}
    fed.use()
    assert fed.feed.ages() == {}


async def test_a_policy_in_shadow_is_followed_and_a_disabled_one_is_not() -> None:
    fed = Fed("n1")
    metric = {"name": "load", "query": "up"}
    rules = [{"name": "r", "require": "metrics.load < 1"}]
    fed.use(compiled(name="p", mode="Shadow", filters=rules, metrics=[metric]))
    assert set(fed.source.wanted) == {LOAD}
    fed.use(compiled(name="p", mode="Disabled", filters=rules, metrics=[metric]))
    assert fed.source.wanted == {}


async def test_values_reach_the_columns() -> None:
    fed = Fed("n1", "n2")
    fed.use(policy())
    column = fed.stand.scheduler.cluster.metrics.column(LOAD, 120.0)
    fed.say({"n1": 0.25})
    assert column.data[:2].tolist()[0] == 0.25
    assert str(column.data[1]) == "nan"


async def test_there_is_news_where_a_problem_or_the_first_value_comes_or_goes() -> None:
    fed = Fed("n1")
    fed.use(policy())
    steps: list[tuple[dict[str, float] | None, str, int]] = [
        ({"n1": 0.25}, "", 1),
        ({"n1": 0.5}, "", 1),
        (None, "down", 2),
        (None, "down", 2),
        ({"n1": 0.5}, "", 3),
        ({}, "", 4),
        ({}, "", 4),
    ]
    for samples, problem, news in steps:
        fed.say(samples, problem)
        assert (fed.news, fed.problem) == (news, problem)


async def test_values_for_no_node_of_the_cluster_are_a_problem() -> None:
    fed = Fed("n1")
    fed.use(policy())
    fed.say({"10.0.0.1:9100": 1.0, "10.0.0.2:9100": 1.0})
    assert fed.problem == 'no series is for a node of this cluster; the label "node" has values such as "10.0.0.1:9100"'
    fed.say({"10.0.0.1:9100": 1.0, "n1": 1.0})
    assert fed.problem == ""


async def test_problems_of_values_are_logged_when_they_begin_and_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "policysched")
    fed = Fed("n1")
    fed.use(policy())
    for name in ("10.0.0.1:9100", "10.0.0.1:9100", "n1"):
        fed.say({name: 1.0})
    problem = 'no series is for a node of this cluster; the label "node" has values such as "10.0.0.1:9100"'
    assert caplog.messages == [f"metrics: {problem} (up)", f"metrics: resolved: {problem}"]


async def test_a_problem_that_its_source_logs_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    fed = Fed("n1")
    fed.use(policy())
    fed.say({"other": 1.0}, "the server warns")
    assert (caplog.messages, fed.problem) == ([], "the server warns")


async def test_a_cluster_without_nodes_is_no_problem() -> None:
    fed = Fed()
    fed.use(policy())
    fed.say({"n1": 1.0})
    assert fed.problem == ""


async def test_a_greatest_age_below_the_interval_is_a_problem() -> None:
    fed = Fed("n1", interval=15.0)
    fed.use(policy(maxAge="10s"))
    fed.say({"n1": 1.0})
    assert fed.problem == (
        'values are refreshed every 15 s, but policy "p" treats them as missing after 10 s; '
        "raise maxAge or lower --metrics-interval"
    )
    fed.use(policy(maxAge="15s"))
    fed.say({"n1": 1.0})
    assert fed.problem == ""


async def test_the_start_waits_for_values_but_not_long(monkeypatch: pytest.MonkeyPatch) -> None:
    fed = Fed()
    await fed.feed.wait_for_first_values()
    fed.source.slow = True
    monkeypatch.setattr("policysched.app.running.node_metrics.FIRST_VALUES_WITHIN", 0.05)
    began = time.monotonic()
    await fed.feed.wait_for_first_values()
    assert 0.04 < time.monotonic() - began < 60


async def test_without_a_source_every_metric_says_so() -> None:
    source = NoSource()
    source.follow({LOAD: frozenset({"load"})})
    await source.settled()
    async with running(source) as kept:
        await kept.reaches(1)
        assert kept.answers == {LOAD: MetricAnswer(LOAD, None, NO_SOURCE)}
        other = MetricKey("other", "node")
        source.follow({other: frozenset()})
        await kept.reaches(2)
        assert kept.all[1].key == other


def source_of(options: MetricOptions) -> object:
    return make_source(options, SystemClock(), SourceCounters())


def test_the_flags_choose_the_source(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "metrics.yaml"
    path.write_text("load: {}")
    assert isinstance(source_of(MetricOptions()), NoSource)
    assert isinstance(source_of(MetricOptions(file=path)), FileSource)
    assert isinstance(source_of(MetricOptions(file=Path("/none/yet"))), FileSource)
    assert isinstance(source_of(MetricOptions(url="http://prometheus")), PrometheusSource)
    assert caplog.text == ""
    path.write_text("token")
    source_of(MetricOptions(url="https://prometheus", token_file=path))
    assert caplog.text == ""
    source_of(MetricOptions(url="http://prometheus", token_file=path))
    assert "the token of --prometheus-token-file is sent to http://prometheus unencrypted" in caplog.text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"url": "http://a", "file": Path("f")}, "--prometheus-url and --metrics-file cannot be used together"),
        ({"token_file": Path("f")}, "--prometheus-token-file needs --prometheus-url"),
        ({"ca_file": Path("f"), "file": Path("f")}, "--prometheus-ca-file needs --prometheus-url"),
        ({"file": Path("/")}, "/ cannot be read: is a directory"),
    ],
)
def test_flags_that_do_not_go_together_are_usage_errors(options: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        source_of(MetricOptions(**options))


@pytest.mark.parametrize(("text", "seconds"), [("15s", INTERVAL), ("1min", 60.0), ("1500ms", 1.5), ("1s", 1.0)])
def test_intervals_are_durations_as_in_policies(text: str, seconds: float) -> None:
    assert read_interval(text) == seconds


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "is not a duration; write it as 15s or 1min"),
        ("15", "is not a duration"),
        ("1m", "is not a duration"),
        ("-5s", "is too short|is not a duration"),
        ("0", "is not a duration"),
        ("0s", "is too short; the minimum is 1s"),
        ("999ms", "is too short"),
        ("node.age", "is not a duration"),
        ('"15s"', "is not a duration"),
    ],
)
def test_what_is_no_interval_is_a_usage_error(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        read_interval(text)
