"""The feed on a real Prometheus server, which has the last word on what its answers look like.

One server for all: it takes five seconds before it scrapes for the first time.
"""

from __future__ import annotations

import time
from pathlib import Path

from policysched.app.clock import SystemClock
from policysched.framework import MetricKey
from policysched.metric_sources.prometheus import PrometheusSource
from policysched.metric_sources.prometheus_http import PrometheusClient, ServerSettings
from tests.metric_sources.following import Counted, Kept, answers, running, wanting
from tests.metric_sources.real_prometheus import RealPrometheus, exporter, real_prometheus

LOAD = MetricKey("node_demo_load", "node")
DOUBLED = 'node_demo_load or label_replace(node_demo_load{node="n1"}, "cpu", "0", "", "")'
PROBLEMS = {
    "node_demo_load{": "the server refuses the query (bad_data: ",
    "1 + 1": "must return one number per node, but returns a scalar",
    '"text"': "but returns a string",
    "node_demo_load[5m]": "remove the [range]",
    "count(up)": 'the series have no label "node", they have no labels at all',
    "up": 'the series have no label "node", they have instance, job',
    DOUBLED: "two series for node n1; ",
}


def source(server: RealPrometheus, counted: Counted) -> PrometheusSource:
    asked = PrometheusClient(ServerSettings(server.url))
    return PrometheusSource(asked, SystemClock(), counted.counters, interval=0.1)


async def until_values(kept: Kept, expected: dict[str, float]) -> None:
    await kept.reaches(1)
    end = time.monotonic() + 20
    while kept.values(LOAD) != expected:
        assert time.monotonic() < end, (kept.values(LOAD), kept.problem(LOAD))
        await kept.reaches(len(kept.all) + 1)


async def test_a_real_server_is_understood_until_it_is_gone(tmp_path: Path) -> None:
    counted = Counted()
    async with exporter({"n1": 0.9, "n2": 0.5}) as scraped, real_prometheus(tmp_path, scraped) as server:
        feed = source(server, counted)
        feed.follow(wanting(LOAD))
        async with running(feed) as kept:
            await until_values(kept, {"n1": 0.9, "n2": 0.5})
            sample = (kept.answers[LOAD].samples or {})["n1"]
            assert 0 <= time.time() - sample.at < 5
            await check_problems(server)
            scraped.load = {"n1": 0.2, "n2": float("nan")}
            await until_values(kept, {"n1": 0.2})
            scraped.load = {}
            await until_values(kept, {})
            server.program.stop()
            await kept.reaches(len(kept.all) + 2)
            assert kept.values(LOAD) is None
            assert server.url in kept.problem(LOAD)
    assert set(counted.outcomes()) == {"answered", "unreachable"}


async def check_problems(server: RealPrometheus) -> None:
    """Each wrong query says what is wrong with it; one that matches nothing is no problem."""
    counted = Counted()
    nothing = MetricKey("no_such_series", "node")
    keys = {query: MetricKey(query, "node") for query in PROBLEMS}
    found = await answers(source(server, counted), (*keys.values(), nothing))
    for query, problem in PROBLEMS.items():
        assert problem in found.problem(keys[query])
    assert found.values(keys[DOUBLED]) == {"n2": 0.5}
    assert (found.values(nothing), found.problem(nothing)) == ({}, "")
    assert counted.outcomes() == {"answered": 4, "refused": 1, "malformed": 3}
