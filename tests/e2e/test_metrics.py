"""Metrics in a running scheduler: from a real Prometheus server and from a file, and what happens without them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from policysched.app.running.metric_options import MetricOptions
from policysched.sandbox import Sandbox
from tests.e2e.conftest import Running, Spawning
from tests.e2e.objects import Json, node, pod, policy, unfit
from tests.e2e.server import Server
from tests.e2e.waiting import until
from tests.metric_sources.fake_prometheus import FakePrometheus, after, fake_prometheus, given, nodes, series, vector
from tests.metric_sources.real_prometheus import exporter, real_prometheus

HOT = "policy cool/not-too-hot: too hot"


def cool(require: str = "(metrics.load < 80%) ?? false", **metric: str) -> Json:
    declared = {"name": "load", "query": "node_demo_load", **metric}
    rule = {"name": "not-too-hot", "require": require, "message": "too hot"}
    return policy("cool", metrics=[declared], filters=[rule])


async def load_input(server: Server, **wanted: Any) -> Json:
    """Wait until the policy's status says this of its metric."""

    async def look() -> Json:
        instances = (await server.get("SchedulingPolicy", "cool")).get("status", {}).get("instances", [])
        found = [item for one in instances for item in one.get("inputs", []) if item["name"] == "metrics.load"]
        return found[0] if found else {}

    return await until(look, lambda item: {name: item.get(name) for name in wanted} == wanted)


def asking(fake: FakePrometheus) -> MetricOptions:
    return MetricOptions(url=fake.url, interval=0.2)


@pytest.fixture
def hasty(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the sandbox alone, with news told at once."""
    monkeypatch.setattr("policysched.schedule.reload.NEWS_GATHER", 0.1)


async def test_values_of_a_real_prometheus_keep_a_pod_out_and_let_it_in(
    server: Server, spawning: Spawning, tmp_path: Path
) -> None:
    await server.load(node("n1"), node("n2"), cool())
    async with (
        exporter({"n1": 0.9, "n2": 0.95}) as scraped,
        real_prometheus(tmp_path, scraped) as prometheus,
        spawning(f"--prometheus-url={prometheus.url}", "--metrics-interval=1s") as scheduler,
    ):
        await load_input(server, present=2, total=2)
        await server.load(pod("web"))
        await server.turned_away("web", unfit(2, f"2 {HOT}"))
        scraped.load = {"n1": 0.9, "n2": 0.2}
        assert await server.placed("web") == {"web": "n2"}
        prometheus.program.stop()
        await scheduler.said(f"metrics: cannot connect to {prometheus.url}: ")
        await server.load(pod("later"))
        assert await server.placed("later") == {"later": "n2"}


async def test_an_edit_of_the_file_wakes_the_pod_that_waits(
    server: Server, sandbox: Sandbox, spawning: Spawning, tmp_path: Path
) -> None:
    file = tmp_path / "metrics.yaml"
    file.write_text("load: {n1: 0.9}")
    await server.load(node("n1"), cool())
    async with spawning(f"--metrics-file={file}"):
        await server.load(pod("web"))
        await server.turned_away("web", unfit(1, f"1 {HOT}"))
        file.write_text("load: {n1: 0.3}")
        assert await server.placed("web") == {"web": "n1"}


async def test_a_policy_that_asks_for_something_else_is_followed(server: Server, hasty: None, running: Running) -> None:
    await server.load(node("n1"), cool())
    async with fake_prometheus() as fake:
        fake.answers |= {"node_demo_load": nodes(n1=0.9), "other": nodes(n1=0.1)}
        async with running(metrics=asking(fake)) as scheduler:
            await server.load(pod("web"))
            await server.turned_away("web", unfit(1, f"1 {HOT}"))
            await server.patch("SchedulingPolicy", "cool", cool(query="other"))
            assert await server.placed("web") == {"web": "n1"}
            await server.delete("SchedulingPolicy", "cool")
            await scheduler.said('policy "cool" is deleted and no longer in force')
            asked = list(fake.queries)
            await asyncio.sleep(0.6)
            assert asked[-1] == "other"
            assert len(fake.queries) <= len(asked) + 1


async def test_the_status_follows_what_is_wrong_with_a_metric(server: Server, hasty: None, running: Running) -> None:
    await server.load(node("n1"), node("n2"), cool())
    async with fake_prometheus() as fake:
        fake.otherwise = vector(series("n1", 0.1, cpu="0"), series("n1", 0.1, cpu="1"), series("n2", 0.2))
        async with running(metrics=asking(fake)):
            problem = "two series for node n1; aggregate or select in the query"
            await load_input(server, present=1, problem=problem)
            await server.load(pod("web"))
            assert await server.placed("web") == {"web": "n2"}
            fake.otherwise = nodes(n1=0.1, n2=0.2)
            await load_input(server, problem=None)
            fake.otherwise = given("<html>", 502, "text/html")
            problem = f"{fake.url} answers 502 Bad Gateway with text/html, not an answer of Prometheus"
            await load_input(server, present=2, problem=f"{problem}; check --prometheus-url")


async def test_a_long_outage_makes_values_missing_and_its_end_wakes_the_pod(
    server: Server, hasty: None, running: Running
) -> None:
    await server.load(node("n1"), cool(maxAge="3s"))
    async with fake_prometheus() as fake:
        fake.otherwise = nodes(n1=0.1)
        async with running(metrics=asking(fake)):
            await server.load(pod("early"))
            assert await server.placed("early") == {"early": "n1"}
            fake.otherwise = given("", 502)
            await asyncio.sleep(3.5)
            await server.load(pod("late"))
            await server.turned_away("late", unfit(1, f"1 {HOT} (metrics.load is missing)"))
            fake.otherwise = nodes(n1=0.1)
            assert await server.placed("late") == {"late": "n1"}


async def test_a_process_without_a_source_says_so(server: Server, hasty: None, running: Running) -> None:
    await server.load(node("n1"), cool("(metrics.load < 80%) ?? true"))
    async with running():
        item = await load_input(server, present=0)
        assert item["problem"].startswith("this scheduler has no source of metrics; ")
        await server.load(pod("web"))
        assert await server.placed("web") == {"web": "n1"}


async def test_a_server_that_hangs_from_the_start_holds_nothing_up(
    server: Server, hasty: None, running: Running
) -> None:
    await server.load(node("n1"), cool("(metrics.load < 80%) ?? true"))
    async with fake_prometheus() as fake:
        fake.otherwise = after(60, nodes(n1=0.1))
        async with running(metrics=asking(fake)):
            await server.load(pod("web"))
            assert await server.placed("web") == {"web": "n1"}
