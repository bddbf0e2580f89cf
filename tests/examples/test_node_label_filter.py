from __future__ import annotations

import logging

import pytest

from policysched import dry_run
from policysched.testing import make_node, make_pod, scheduling
from tests.examples.playing import failure, objects, playing, running
from tests.examples.plugins import decided, example_plugin

EXAMPLE = "tour/02-node-label-filter"
NODES = ("worker-1", "worker-2", "worker-3")


async def test_nginx_goes_to_the_labelled_node_and_others_are_not_touched() -> None:
    async with playing(EXAMPLE, "default-scheduler") as on:
        await on.apply(*objects(EXAMPLE, "policy.yaml"))
        for pod in objects(EXAMPLE, "pods.yaml"):
            await on.api.create(pod)
        assert await running(on, 2) == {"nginx-1": "worker-1", "redis-1": "worker-2"}


async def test_nginx_waits_until_a_node_has_the_label() -> None:
    nginx = objects(EXAMPLE, "pods.yaml")[0]
    async with playing(EXAMPLE, "default-scheduler") as on:
        await on.api.patch("Node", "worker-1", {"metadata": {"labels": {"test": None}}})
        await on.apply(*objects(EXAMPLE, "policy.yaml"))
        await on.api.create(nginx)
        message = await failure(on, "nginx-1")
        assert message.startswith(
            "0/4 nodes are available: 1 node(s) had untolerated taint(s), "
            "3 policy node-label/node-label: no match label."
        )
        await on.api.patch("Node", "worker-3", {"metadata": {"labels": {"test": "test"}}})
        assert await running(on, 1) == {"nginx-1": "worker-3"}


@pytest.mark.parametrize("name", ["nginx", "my-nginx-2"])
def test_other_nodes_are_unresolvable(name: str) -> None:
    pod = objects(EXAMPLE, "pods.yaml")[0]
    named = {**pod, "metadata": {"name": name}}
    record = dry_run(objects(EXAMPLE, "cluster.yaml"), named, objects(EXAMPLE, "policy.yaml")).to_dict()
    rejected = {node: record["rejected"][node] for node in NODES if node in record["rejected"]}
    expected = {
        "plugin": "SchedulingPolicy/node-label",
        "code": "UnschedulableAndUnresolvable",
        "reasons": ["policy node-label/node-label: no match label"],
    }
    assert rejected == {"worker-2": expected, "worker-3": expected}


@pytest.mark.parametrize("name", ["nginx", "my-nginx-2"])
def test_plugin_rejects_the_nodes_that_the_policy_rejects(name: str) -> None:
    pod = {**objects(EXAMPLE, "pods.yaml")[0], "metadata": {"name": name}}
    record = decided(EXAMPLE, pod, "sample_plugin.py", "SamplePlugin")
    assert record["selected"] == "worker-1"
    expected = {"plugin": "sample-plugin", "code": "UnschedulableAndUnresolvable", "reasons": ["no match label"]}
    rejected = {node: said for node, said in record["rejected"].items() if node in NODES}
    assert rejected == {"worker-2": expected, "worker-3": expected}


def test_plugin_lets_other_pods_alone() -> None:
    pod = objects(EXAMPLE, "pods.yaml")[1]
    assert decided(EXAMPLE, pod, "sample_plugin.py", "SamplePlugin")["selected"] == "worker-2"


def test_plugin_says_where_a_pod_goes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    plugin = example_plugin(EXAMPLE, "sample_plugin.py", "SamplePlugin")
    args = {"node_label": "test/test", "workload_name": "nginx"}
    with scheduling(plugin, nodes=[make_node("n1", labels={"test": "test"}), make_node("n2")], args=args) as scheduler:
        assert scheduler.schedule(make_pod("nginx-1")).node == "n1"
    said = [one.getMessage() for one in caplog.records if one.name.startswith("sample_plugin")]
    assert said == ["prefilter pod: nginx-1", "prebind get node : n1"]
