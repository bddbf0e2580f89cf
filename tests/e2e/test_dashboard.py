"""Every expression of the dashboard and the alerts, on a Prometheus that scrapes a running scheduler.

The scheduler has pods that fit and some that do not, policies that filter, score and are refused, a metric and a lease:
every panel has something to show.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from policysched.sandbox import Sandbox
from tests.app.serving.ports import free_port
from tests.e2e.objects import node, only, pod, policy
from tests.e2e.schedulers import spawned
from tests.e2e.server import Server
from tests.e2e.test_serving import ALL_OPEN, Port
from tests.e2e.waiting import until
from tests.metric_sources.real_prometheus import RealPrometheus, real_prometheus
from tests.monitoring.test_alerts import rules
from tools.documents.markdown import ROOT

DASHBOARD: Final = ROOT / "deploy" / "monitoring" / "dashboard.json"
JOB: Final = "policysched"
RATES: Final = "15s"
"""In place of Grafana's interval, which follows the time that a panel shows."""
QUIET: Final = {"Objects left out"}
OF_FILES: Final = {"policysched_configuration_reloads_total"}
"""The metrics of a scheduler with a configuration file."""
"""Panels that have nothing to show while nothing is wrong."""
BAD: Final = {"name": "f", "require": "node.Name"}


def panels() -> Iterator[dict[str, Any]]:
    """The panels that ask something."""
    found = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    return (panel for panel in found if panel["type"] != "row")


def expressions() -> Iterator[tuple[str, str]]:
    """Each expression of the dashboard as Grafana would send it, with its panel."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$job", JOB).replace("$__rate_interval", RATES)


def selected(expression: str) -> set[str]:
    """The names of metrics in an expression."""
    return set(re.findall(r"([a-z_]+)\{", expression))


def names(text: str) -> set[str]:
    """The names of the series that a page of metrics may have."""
    found = {"up"}
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        found |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
    return found


class Asked:
    """A Prometheus that answers queries."""

    def __init__(self, server: RealPrometheus, session: aiohttp.ClientSession) -> None:
        self._server, self._session = server, session

    async def series(self, expression: str) -> list[dict[str, Any]]:
        """Evaluate an expression now; one that cannot be is a failure of the test."""
        async with self._session.post(f"{self._server.url}/api/v1/query", data={"query": expression}) as response:
            answer = await response.json()
        assert answer["status"] == "success", (expression, answer)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found


@asynccontextmanager
async def scheduling(server: Server, folder: Path) -> AsyncIterator[Port]:
    """Run a scheduler that has something of everything to tell."""
    port, metrics = Port(free_port()), folder / "metrics.yaml"
    metrics.write_text("load: {n1: 0.5, n2: 0.6}\n")
    loaded = policy("loaded", metrics=[{"name": "load", "query": "q"}], scores=[{"name": "s", "value": "metrics.load"}])
    kept = only("pin", "n9", appliesTo='pod.labels["kept"] == "yes"')
    await server.load(node("n1"), node("n2"), loaded, kept, policy("bad", filters=[BAD]))
    flags = [f"--kubeconfig={server.kubeconfig}", f"--secure-port={port.number}", "--bind-address=127.0.0.1"]
    async with spawned(*flags, f"--metrics-file={metrics}", ALL_OPEN):
        await port.says("/readyz", 200)
        yield port


@pytest.fixture
async def asked(sandbox: Sandbox, sandbox_server: Server, tmp_path: Path) -> AsyncIterator[tuple[Asked, Port]]:
    token = tmp_path / "token"
    token.write_text("anybody")
    async with scheduling(sandbox_server, tmp_path) as port:
        job = {
            "job_name": JOB,
            "scheme": "https",
            "authorization": {"type": "Bearer", "credentials_file": str(token)},
            "tls_config": {"insecure_skip_verify": True},
            "static_configs": [{"targets": [f"127.0.0.1:{port.number}"]}],
        }
        async with real_prometheus(tmp_path, job) as server, aiohttp.ClientSession() as session:
            found = Asked(server, session)
            await until(lambda: found.series(f'up{{job="{JOB}"}} == 1'), bool)
            yield found, port


async def work(server: Server, number: int) -> None:
    """Give the scheduler a pod that fits, one that is too large and one that a policy keeps off; rates need time."""
    huge, kept = pod(f"huge-{number}", requests={"cpu": "99"}), pod(f"kept-{number}", labels={"kept": "yes"})
    await server.load(pod(f"fits-{number}"), huge, kept)


async def test_every_panel_shows_something(asked: tuple[Asked, Port], sandbox_server: Server) -> None:
    prometheus, port = asked
    left, number = dict.fromkeys(expressions()), 0

    async def asked_again() -> list[tuple[str, str]]:
        nonlocal number
        if number < 200:
            await work(sandbox_server, number)
            number += 1
        for title, expression in list(left):
            series = await prometheus.series(expression)
            if any(one["value"][1] != "NaN" for one in series) or title in QUIET:
                del left[title, expression]
        return list(left)

    await until(asked_again, lambda found: not found)
    known = names((await port.get("/metrics"))[1])
    for title, expression in expressions():
        assert selected(expression) <= known, title
    for rule in rules():
        await prometheus.series(rule["expr"])
        assert selected(rule["expr"]) <= known | OF_FILES, rule["alert"]


def test_a_misspelt_name_would_be_found() -> None:
    known = names("# TYPE a_seconds histogram\n# TYPE b_total counter\n")
    assert selected('rate(a_seconds_bucket{job="x"}[5m])') <= known
    assert not selected('rate(a_second_bucket{job="x"}[5m])') <= known
    assert all(selected(expression) for _, expression in expressions())


def test_the_dashboard_can_be_imported() -> None:
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    identities = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(identities)) == len(identities)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]}
    assert len(places) == len(identities), "no panel lies on another"
    variables = {one["name"] for one in dashboard["templating"]["list"]}
    assert variables == {"datasource", "job"}
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["description"]
        for target in panel["targets"]:
            assert '{job="$job"' in target["expr"]
