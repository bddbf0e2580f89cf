from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from policysched import dry_run
from tests.examples.playing import objects, playing, running
from tests.examples.plugins import decided

EXAMPLE = "tour/01-tonodename"
PROFILE = "sample-scheduler"


async def test_deployment_runs_without_the_control_plane(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "policysched.schedule")
    async with playing(EXAMPLE, PROFILE) as on:
        await on.apply(*objects(EXAMPLE, "policy.yaml"))
        await on.api.create(*objects(EXAMPLE, "deployment.yaml"))
        nodes = Counter((await running(on, 10)).values())
    assert nodes["master"] == 0
    assert nodes["piworknode001"] == max(nodes.values())
    assert len(nodes) > 1, "the default plugins' scores count too"
    bound = [record.args for record in caplog.records if record.msg == "Successfully bound pod to node"]
    told = [(one["node"], one["evaluatedNodes"], one["feasibleNodes"]) for one in bound if isinstance(one, Mapping)]
    assert len(told) == 10
    assert all(evaluated == 4 and feasible in (2, 3) for _, evaluated, feasible in told)
    assert ("piworknode001", 4, 3) in told


def test_scores_are_100_25_25_for_three_feasible_of_four_nodes() -> None:
    template = objects(EXAMPLE, "deployment.yaml")[0]["spec"]["template"]
    pod = {"kind": "Pod", **template, "metadata": {**template["metadata"], "name": "test-scheduler"}}
    record = dry_run(objects(EXAMPLE, "cluster.yaml"), pod, objects(EXAMPLE, "policy.yaml")).to_dict()
    policy = {node: scores["SchedulingPolicy/tonodename"] for node, scores in record["scores"].items()}
    assert policy == {"piworknode001": 100, "piworknode002": 25, "piworknode003": 25}
    assert list(record["rejected"]) == ["master"]
    assert record["rules"]["tonodename"]["scores"] == {"tonodename": policy}
    assert record["selected"] == "piworknode001"


async def test_pods_of_another_scheduler_name_are_left_alone() -> None:
    pod: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"name": "other"},
        "spec": {"schedulerName": "another", "containers": [{"name": "a", "image": "a"}]},
    }
    ours = {**pod, "metadata": {"name": "ours"}, "spec": {**pod["spec"], "schedulerName": PROFILE}}
    async with playing(EXAMPLE, PROFILE) as on:
        await on.api.create(pod)
        await on.api.create(ours)
        assert list(await running(on, 1)) == ["ours"]
        assert (await on.api.get("Pod", "other"))["spec"].get("nodeName") is None


def test_plugin_gives_the_scores_of_the_policy(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    template = objects(EXAMPLE, "deployment.yaml")[0]["spec"]["template"]
    pod = {"kind": "Pod", **template, "metadata": {**template["metadata"], "name": "test-scheduler"}}
    record = decided(EXAMPLE, pod, "tonodename.py", "ToNodeName")
    by_policy = dry_run(objects(EXAMPLE, "cluster.yaml"), pod, objects(EXAMPLE, "policy.yaml")).to_dict()
    scores = {node: of["tonodename-scoring-plugin"] for node, of in record["scores"].items()}
    assert scores == {"piworknode001": 100, "piworknode002": 25, "piworknode003": 25}
    assert (record["total"], record["rejected"]) == (by_policy["total"], by_policy["rejected"])
    logged = sorted(one.getMessage().rpartition("node=")[2] for one in caplog.records if "score=" in one.getMessage())
    assert logged == ["piworknode001 score=100", "piworknode002 score=25", "piworknode003 score=25"]
