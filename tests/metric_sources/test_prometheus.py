"""Asking a Prometheus server once: what is sent, with which credentials, and how often for many metrics."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from policysched.framework import MetricKey, Sample
from policysched.metric_sources.prometheus import AT_ONCE, NEW_AT_ONCE, SLOW_AT_ONCE, by_query
from policysched.metric_sources.prometheus_http import PrometheusClient, ServerSettings
from tests.metric_sources.fake_prometheus import Counted, Held, after, fake_prometheus, given, nodes, series, vector
from tests.metric_sources.following import LOAD, answers, prometheus, running, wanting


async def test_a_compressed_answer_is_not_asked_for() -> None:
    async with fake_prometheus() as fake:
        await answers(prometheus(fake))
    assert fake.headers[0]["Accept-Encoding"] == "identity"


async def test_the_path_of_the_url_stays() -> None:
    async with fake_prometheus(path="/prometheus/api/v1/query") as fake:
        fake.otherwise = nodes(n1=1)
        for behind in ("/prometheus", "/prometheus/"):
            fake.url = fake.url.split("/prometheus")[0] + behind
            assert (await answers(prometheus(fake))).values() == {"n1": 1.0}


async def test_a_query_of_many_metrics_is_asked_once() -> None:
    other = MetricKey("load", "instance")
    async with fake_prometheus() as fake:
        fake.otherwise = vector(series("n1", 1, instance="i1"))
        found = await answers(prometheus(fake), (LOAD, other))
        assert fake.queries == ["load"]
    assert found.values(LOAD) == {"n1": 1.0}
    assert found.values(other) == {"i1": 1.0}


def test_metrics_are_grouped_by_query() -> None:
    one, two, three = MetricKey("a", "x"), MetricKey("a", "y"), MetricKey("b", "x")
    assert by_query((one, two, three)) == {"a": {one, two}, "b": {three}}


async def test_queries_reach_the_server_as_they_are_written() -> None:
    query = 'sum by (node) (rate(x{mode!="idle",a=~"b+|ü"}[5m])) > 1 & 2%'
    async with fake_prometheus() as fake:
        fake.answers[query] = nodes(n1=2)
        key = MetricKey(query, "node")
        assert (await answers(prometheus(fake), (key,))).values(key) == {"n1": 2.0}


async def test_only_so_many_queries_are_under_way() -> None:
    counted = Counted(0.02, nodes(n1=1))
    async with fake_prometheus() as fake:
        fake.otherwise = counted
        keys = [MetricKey(f"q{number}", "node") for number in range(3 * AT_ONCE)]
        found = await answers(prometheus(fake), keys)
    assert len(found.answers) == 3 * AT_ONCE
    assert counted.most == AT_ONCE


async def test_queries_that_were_slow_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.metric_sources.prometheus.SLOW", 0.01)
    slow = Counted(0.05, nodes(n1=1))
    async with fake_prometheus() as fake:
        fake.otherwise = slow
        source = prometheus(fake)
        wanted = wanting(*(MetricKey(f"q{number}", "node") for number in range(3 * AT_ONCE)))
        seen = []
        for _ in range(2):
            slow.most = 0
            assert len(await source.ask(wanted)) == 3 * AT_ONCE
            seen.append(slow.most)
        assert seen == [AT_ONCE, SLOW_AT_ONCE]
        fake.otherwise = nodes(n1=1)
        await source.ask(wanted)
        fake.otherwise, slow.most = slow, 0
        monkeypatch.setattr("policysched.metric_sources.prometheus.SLOW", 10.0)
        await source.ask(wanted)
        assert slow.most == AT_ONCE


async def test_queries_that_were_never_asked_are_tried_for_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many somebody writes, the queries of others are asked again, and a new one soon has its turn."""
    monkeypatch.setattr("policysched.metric_sources.prometheus.SLOW", 0.1)
    quick, late = MetricKey("quick", "node"), MetricKey("late", "node")
    many = [MetricKey(f"q{number}", "node") for number in range(4 * NEW_AT_ONCE)]
    async with fake_prometheus() as fake:
        fake.answers["quick"] = fake.answers["late"] = nodes(n1=1)
        source = prometheus(fake, interval=0.02)
        source.follow(wanting(quick))
        async with running(source) as found:
            await found.reaches(1)
            fake.otherwise = after(0.3, nodes(n1=1))
            source.follow(wanting(quick, *many))
            await asyncio.sleep(0)
            source.follow(wanting(quick, *many, late))
            async with asyncio.timeout(60):
                while late not in found.answers:
                    await found.reaches(len(found.all) + 1)
            asked = fake.queries[: fake.queries.index("late")]
            assert asked.count("quick") >= 3
            assert set(found.answers) - {quick, late} < set(many)
            async with asyncio.timeout(60):
                while not set(many) <= set(found.answers):
                    await found.reaches(len(found.all) + 1)
    assert not any(one.problem for one in found.answers.values())


async def test_the_time_of_a_sample_is_the_servers() -> None:
    clock = Held()
    async with fake_prometheus() as fake:
        fake.otherwise = vector(series("n1", 1, clock.at - 7), series("n2", 1, clock.at + 7))
        found = await answers(prometheus(fake, clock=clock))
    assert found.answers[LOAD].samples == {"n1": Sample(1.0, clock.at - 7), "n2": Sample(1.0, clock.at)}


async def test_a_rotated_token_is_used_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with fake_prometheus() as fake:
        server = PrometheusClient(ServerSettings(fake.url, token))
        await server.ask("a")
        token.write_text("second")
        await server.ask("a")
        await server.close()
    assert [headers["Authorization"] for headers in fake.headers] == ["Bearer first", "Bearer second"]


async def test_a_token_is_sent_nowhere_else(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    async with fake_prometheus() as other, fake_prometheus() as fake:
        fake.otherwise = given("", 307, Location=f"{other.url}/api/v1/query")
        server = PrometheusClient(ServerSettings(fake.url, token))
        with pytest.raises(Exception, match="redirects to"):
            await server.ask("a")
        await server.close()
        assert other.headers == []


async def test_a_token_that_goes_is_a_problem_until_it_is_back(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    async with fake_prometheus() as fake:
        fake.otherwise = nodes(n1=1)
        source = prometheus(fake)
        source._server = PrometheusClient(ServerSettings(fake.url, token))
        token.unlink()
        assert (await answers(source)).problem() == f"{token} cannot be read: no such file or directory"
        token.write_text("")
        assert (await answers(source)).problem() == f"{token} contains no token: it is empty"
        token.write_text("two")
        assert (await answers(source)).values() == {"n1": 1.0}
        assert fake.queries == ["load"]


async def test_the_form_is_what_the_api_takes() -> None:
    async with fake_prometheus() as fake:
        await answers(prometheus(fake))
    assert fake.asked == [{"query": "load", "timeout": "5s"}]
    assert fake.headers[0]["Content-Type"] == "application/x-www-form-urlencoded"
    assert "Authorization" not in fake.headers[0]
