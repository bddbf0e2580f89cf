"""Metrics in decisions that are made once: given in Python, read from a file, asked of a server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from policysched import dry_run
from policysched.app.dry_run.metrics import NOT_GIVEN, measuring
from policysched.app.running.metric_options import MetricOptions
from policysched.errors import UsageError
from policysched.framework import MetricAnswer, MetricKey, Sample
from tests.metric_sources.fake_prometheus import fake_prometheus, nodes

NODES: list[dict[str, Any]] = [
    {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}}
    for name in ("n1", "n2", "n3")
]
POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a"}]}}


def policy(require: str = "metrics.load < 80%", name: str = "cool", **metric: str) -> dict[str, Any]:
    spec = {
        "metrics": [{"name": "load", "query": "up", **metric}],
        "filters": [{"name": "r", "require": require, "message": "too hot"}],
    }
    return {"metadata": {"name": name}, "spec": spec}


def rejected(metrics: Any, *policies: dict[str, Any]) -> dict[str, str]:
    """The reason of each rejected node."""
    record = dry_run(NODES, POD, policies or [policy()], metrics=metrics, seed=1).to_dict()
    return {node: said["reasons"][0] for node, said in record.get("rejected", {}).items()}


def test_given_numbers_decide() -> None:
    assert rejected({"load": {"n1": 0.9, "n2": 0.2}}) == {
        "n1": "policy cool/r: too hot",
        "n3": "policy cool/r: metrics.load is missing",
    }


def test_numbers_may_be_given_by_query_and_by_policy() -> None:
    assert set(rejected({"up": {"n1": 0.9, "n2": 0.2, "n3": 0.2}})) == {"n1"}
    assert set(rejected({"load": {}, "cool/load": {"n1": 0.1, "n2": 0.2, "n3": 0.9}})) == {"n3"}


@pytest.mark.parametrize(
    ("unit", "require", "number"),
    [
        ("cpu", "metrics.load == 2500m", 2.5),
        ("bytes", "metrics.load == 2Ki", 2048),
        ("duration", "metrics.load == 1500ms", 1.5),
        ("number", "metrics.load == 250%", 2.5),
    ],
)
def test_numbers_are_in_the_servers_units(unit: str, require: str, number: float) -> None:
    assert set(rejected({"load": dict.fromkeys(("n1", "n2"), number)}, policy(require, unit=unit))) == {"n3"}


def test_a_dry_run_without_metrics_says_what_is_missing() -> None:
    report = dry_run(NODES, POD, [policy()])
    assert report.metric_problems == (f"metrics.load: {NOT_GIVEN}",)
    assert report.to_dict()["result"] == "Unschedulable"


def test_a_policy_without_metrics_has_no_problems() -> None:
    assert dry_run(NODES, POD, [policy("node.ready")]).metric_problems == ()


def test_a_metric_that_is_not_given_is_told() -> None:
    report = dry_run(NODES, POD, [policy()], metrics={"other": {"n1": 1}})
    assert report.metric_problems == ('metrics.load: metrics= has no values for "load"',)


def test_what_is_no_table_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"^metrics\['load'\]\['n1'\]: expected a number, got 'x'$"):
        dry_run(NODES, POD, [policy()], metrics={"load": {"n1": "x"}})  # type: ignore[dict-item]


def test_values_that_are_too_old_are_missing() -> None:
    def measured(wanted: Any, at: float) -> list[MetricAnswer]:
        assert list(wanted) == [MetricKey("up", "node")]
        ages = {"n1": 30.0, "n2": 60.0, "n3": 61.0}
        samples = {name: Sample(0.1, at - age) for name, age in ages.items()}
        return [MetricAnswer(MetricKey("up", "node"), samples)]

    assert rejected(measured, policy(maxAge="1min")) == {"n3": "policy cool/r: metrics.load is missing"}


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("load: {n1: 0.9, n2: 0.1, n3: 0.1}")
    measured = measuring(MetricOptions(file=path))
    path.unlink()
    assert set(rejected(measured)) == {"n1"}


def test_numbers_of_no_node_of_the_cluster_are_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("load: {ip-10-0-1-17: 0.5}")
    for metrics in (measuring(MetricOptions(file=path)), {"load": {"ip-10-0-1-17": 0.5}}):
        assert dry_run(NODES, POD, [policy()], metrics=metrics).metric_problems == (
            'metrics.load: no node of this cluster has a value; the values are for names such as "ip-10-0-1-17"',
        )


def test_no_flag_measures_nothing() -> None:
    measured = measuring(MetricOptions())
    report = dry_run(NODES, POD, [policy()], metrics=measured)
    assert report.metric_problems == ("metrics.load: no metric source; set --metrics-file or --prometheus-url",)


async def test_a_server_is_asked_once() -> None:
    async with fake_prometheus() as fake:
        fake.otherwise = nodes(n1=0.9, n2=0.1)
        measured = measuring(MetricOptions(url=fake.url))
        assert set(await asyncio.to_thread(rejected, measured, policy(), policy(name="other"))) == {"n1", "n3"}
        assert fake.queries == ["up"]


async def test_a_server_that_is_down_is_told() -> None:
    async with fake_prometheus() as fake:
        measured = measuring(MetricOptions(url=fake.url))
    report = await asyncio.to_thread(dry_run, NODES, POD, [policy()], metrics=measured)
    assert report.metric_problems[0].startswith(f"metrics.load: cannot connect to {fake.url}: ")
