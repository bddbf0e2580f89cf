"""A Prometheus server asked again and again: in what time, for what is wanted by then, and through outages."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from policysched.framework import MetricKey
from tests.metric_sources.fake_prometheus import PAGE, after, fake_prometheus, nodes, series, vector
from tests.metric_sources.following import LOAD, Counted, prometheus, running, wanting


async def test_values_are_refreshed_again_and_again() -> None:
    counted = Counted()
    async with fake_prometheus() as fake:
        fake.otherwise = nodes(n1=1)
        source = prometheus(fake, counted, interval=0.05)
        source.follow(wanting(LOAD))
        async with running(source) as kept:
            await kept.reaches(2)
            assert kept.values() == {"n1": 1.0}
            fake.otherwise = nodes(n1=2, n2=3)
            await kept.reaches(len(kept.all) + 2)
            assert kept.values() == {"n1": 2.0, "n2": 3.0}
            assert counted.outcomes()["answered"] >= 4


async def test_the_interval_is_kept() -> None:
    async with fake_prometheus() as fake:
        source = prometheus(fake, interval=0.4)
        source.follow(wanting(LOAD))
        async with running(source) as kept:
            began = time.monotonic()
            await kept.reaches(3)
            assert time.monotonic() - began >= 0.7


async def test_the_queries_follow_what_is_wanted() -> None:
    first, second = MetricKey("a", "node"), MetricKey("b", "node")
    async with fake_prometheus() as fake:
        source = prometheus(fake, interval=0.02)
        source.follow(wanting(first))
        async with running(source) as kept:
            await kept.reaches(2)
            assert set(kept.answers) == {first}
            source.follow(wanting(first, second))
            await source.settled()
            assert set(kept.answers) == {first, second}
            source.follow(wanting(second))
            await asyncio.sleep(0.05)
            kept.answers.clear()
            before = len(fake.queries)
            await kept.reaches(len(kept.all) + 3)
            assert set(kept.answers) == {second}
            assert set(fake.queries[before + 1 :]) == {"b"}


async def test_a_new_label_is_joined_at_once() -> None:
    other = MetricKey("load", "instance")
    async with fake_prometheus() as fake:
        fake.otherwise = vector(series("n1", 1, instance="i1"))
        source = prometheus(fake)
        source.follow(wanting(LOAD))
        async with running(source) as kept:
            await kept.reaches(1)
            source.follow(wanting(LOAD, other))
            await source.settled()
            assert kept.values(other) == {"i1": 1.0}


async def test_following_the_same_again_asks_nothing() -> None:
    async with fake_prometheus() as fake:
        source = prometheus(fake)
        source.follow(wanting(LOAD))
        async with running(source) as kept:
            await kept.reaches(1)
            source.follow(wanting(LOAD))
            await source.settled()
            await asyncio.sleep(0.05)
            assert fake.queries == ["load"]


async def test_it_is_settled_when_everything_was_asked_once_whatever_came_of_it() -> None:
    slow = MetricKey("slow", "node")
    async with fake_prometheus() as fake:
        fake.answers["slow"] = after(0.3, PAGE)
        source = prometheus(fake)
        await source.settled()
        source.follow(wanting(LOAD, slow))
        async with running(source) as kept:
            await kept.reaches(1)
            assert set(kept.answers) == {LOAD}
            await source.settled()
            assert set(kept.answers) == {LOAD, slow}


async def test_a_query_that_is_dropped_before_its_answer_says_nothing() -> None:
    slow = MetricKey("slow", "node")
    async with fake_prometheus() as fake:
        fake.answers["slow"] = after(0.2, nodes(n1=1))
        source = prometheus(fake)
        source.follow(wanting(LOAD, slow))
        async with running(source) as kept:
            await kept.reaches(1)
            source.follow(wanting(LOAD))
            await source.settled()
            await asyncio.sleep(0.4)
            assert set(kept.answers) == {LOAD}


async def test_a_slow_query_delays_no_other() -> None:
    slow = MetricKey("slow", "node")
    async with fake_prometheus() as fake:
        fake.answers["slow"] = after(30, nodes(n1=1))
        source = prometheus(fake, interval=0.02, timeout=30)
        source.follow(wanting(LOAD, slow))
        async with running(source) as kept:
            await kept.reaches(5)
            assert set(kept.answers) == {LOAD}


async def test_values_outlive_an_outage_and_trouble_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "policysched")
    other = MetricKey("other", "node")
    async with fake_prometheus() as fake:
        fake.otherwise = nodes(n1=1)
        source = prometheus(fake, interval=0.02)
        source.follow(wanting(LOAD, other))
        async with running(source) as kept:
            await kept.reaches(2)
            fake.otherwise = PAGE
            await kept.reaches(len(kept.all) + 8)
            assert (kept.values(), kept.values(other)) == (None, None)
            fake.otherwise = nodes(n1=2)
            await kept.reaches(len(kept.all) + 8)
            assert kept.values() == {"n1": 2.0}
    told = [record for record in caplog.records if record.name.startswith("policysched.metric_sources")]
    assert [record.levelname for record in told] == ["WARNING", "INFO"]
    assert "not an answer of Prometheus" in told[0].getMessage()
    assert told[1].getMessage().startswith("metrics: resolved: ")
