"""The tutorial's cluster: its size, the pod that waits, what its policy changes, and the program that generates it."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import policysched
from policysched.app.demo.scheduled_sandbox import scheduled_sandbox
from policysched.model.quantity import parse
from policysched.reading.loading import load
from tests.examples.cases import EXAMPLES
from tools import tutorial_cluster as tool

FOLDER = EXAMPLES / "tutorial"
TRACE_MODELS = {"T4": "T4", "P100": "P100", "V100": "V100M16", "A10": "G2", "A100": "G3"}
AMOUNTS = ("cpu", "memory", tool.GPU)
Object = dict[str, Any]


@pytest.fixture(scope="module")
def objects() -> list[Object]:
    return [dict(one.object) for one in load([str(FOLDER / "cluster.yaml")])]


def _policy(*, with_exception: bool = True) -> Object:
    [document] = load([str(FOLDER / "policy.yaml")])
    made = dict(document.object)
    if not with_exception:
        [rule] = made["spec"]["filters"]
        filters = [{key: value for key, value in rule.items() if key != "when"}]
        made["spec"] = {**made["spec"], "filters": filters}
    return made


def _requests(pod: Object) -> Object:
    resources = pod["spec"]["containers"][0]["resources"]
    return {**resources["requests"], **resources.get("limits", {})}


def test_cluster_is_small_and_has_one_pod_that_waits(objects: list[Object]) -> None:
    assert (FOLDER / "cluster.yaml").stat().st_size < 400_000
    kinds = Counter(one["kind"] for one in objects)
    assert (kinds["Node"], kinds["Pod"]) == (50, 400)
    names = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
    assert len(set(names)) == len(names)
    assert [one["metadata"]["name"] for one in objects if one["kind"] == "Pod" and "nodeName" not in one["spec"]] == [
        "pretrain-0"
    ]
    assert policysched.why(objects, "research/pretrain-0").state == "Unschedulable"


def test_pods_fit_their_nodes(objects: list[Object]) -> None:
    free = {
        (one["metadata"]["name"], amount): parse(one["status"]["allocatable"].get(amount, 0)).scaled(-3)
        for one in objects
        if one["kind"] == "Node"
        for amount in AMOUNTS
    }
    for pod in (one for one in objects if one["kind"] == "Pod" and "nodeName" in one["spec"]):
        for amount in AMOUNTS:
            free[pod["spec"]["nodeName"], amount] -= parse(_requests(pod).get(amount, 0)).scaled(-3)
    assert min(free.values()) >= 0


def test_policy_takes_every_node_from_evaluations_unless_it_excepts_them(objects: list[Object]) -> None:
    first = policysched.plan(objects, policies=[_policy(with_exception=False)])
    assert {one.workload for one in first.workloads if one.effect == "unschedulable"} == {"research/evaluate (Job)"}
    final = policysched.plan(objects, policies=[_policy()])
    assert final.changes
    assert {one.effect for one in final.workloads} == {"moves"}


async def test_sandbox_with_the_cluster_keeps_its_pods(objects: list[Object]) -> None:
    async with scheduled_sandbox(objects) as on:

        async def message() -> str | None:
            [pod] = [one for one in on.sandbox.objects("Pod") if one["metadata"]["name"] == "pretrain-0"]
            conditions = pod["status"].get("conditions") or ()
            return next((one["message"] for one in conditions if one["type"] == "PodScheduled"), None)

        assert "3 Insufficient nvidia.com/gpu" in await on.until(message, "a decision about pretrain-0")
        assert len(on.sandbox.objects("Pod")) == 400


def test_program_generates_the_file(objects: list[Object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace is not part of the repository, so the shapes come from the file; the first pods are placed anew."""
    places = {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in objects if one["kind"] == "Pod"}
    place, asked = tool.node_of, Counter[str]()

    def node_of(pod: Object, there: Sequence[Object]) -> str:
        asked["pods"] += 1
        if asked["pods"] <= 30:
            return place(pod, there)
        return str(places.get(pod["metadata"]["name"], ""))

    monkeypatch.setattr(tool, "node_of", node_of)
    nodes = {one["metadata"]["name"]: one for one in objects if one["kind"] == "Node"}
    pods = {
        one["metadata"]["labels"]["app"]: (_requests(one), one["spec"].get("nodeSelector", {}))
        for one in objects
        if one["kind"] == "Pod"
    }
    finished = {"cpu": "3152m", "memory": "5600Mi", tool.GPU: "1"}
    pods |= {"thumbnails": pods["label-images"], "baseline": (finished, {"gpu-model": "P100"})}
    with (tmp_path / tool.NODES).open("w", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("sn", "cpu_milli", "memory_mib", "gpu", "model"))
        for pool in tool.POOLS:
            node = nodes[f"{pool.name}-01"]
            cpu, memory, gpus = (node["status"]["allocatable"].get(amount, "0") for amount in AMOUNTS)
            model = node["metadata"]["labels"].get("gpu-model")
            mib = int(memory.removesuffix("Gi")) * 1024
            table.writerow((pool.example, f"{cpu}000", mib, gpus, TRACE_MODELS.get(model, "")))
    with (tmp_path / tool.PODS).open("w", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_spec"))
        for workload in (*tool.WORKLOADS, *tool.FINISHED, tool.WAITING):
            requests, selector = pods[workload.name]
            cpu, memory, gpus = (requests.get(amount, "0") for amount in AMOUNTS)
            model = TRACE_MODELS.get(selector.get("gpu-model"), "")
            table.writerow((workload.example, cpu.removesuffix("m"), memory.removesuffix("Mi"), gpus, model))
    assert tool.main([str(tmp_path), "--output", str(tmp_path / "made.yaml")]) == 0
    assert (tmp_path / "made.yaml").read_text("utf-8") == (FOLDER / "cluster.yaml").read_text("utf-8")
