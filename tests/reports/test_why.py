"""Answers of `why` are in the language's units, and say who holds what a pod lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from policysched.language.ir.types import Unit
from policysched.language.messages.amounts import written
from tests.app.dry_runs import Object, node, pod, policy
from tests.app.why.test_why import bound

from .conftest import Command


@pytest.mark.parametrize(
    "text",
    [
        "node.free.cpu is 4,",
        "pod.requests.cpu is 1500m",
        "node.free.memory is 8Gi, pod.requests.memory is 3Gi",
        "pod.requests.ephemeral_storage is 2Gi",
        "node.requested.cpu is 0, node.allocatable.cpu is 4",
        "pod.age is 332d",
    ],
)
def test_values_have_the_units_of_the_language(command: Command, text: str) -> None:
    done = command("why", "web", "--cluster", "c13-units.yaml", "--now", "2026-11-29T12:00:00Z", "-o", "json")
    assert (done.code, text in done.out) == (0, True)
    done = command("why", "web", "--cluster", "c13-units.yaml")
    assert done.out.startswith("pod default/web does not fit the only node: 1 node lacks 2Gi ephemeral-storage and ")


@given(st.integers(0, 2**53), st.integers(0, 2**53), st.sampled_from(list(Unit)))
def test_different_values_never_have_the_same_text(one: int, other: int, unit: Unit) -> None:
    for more in (other, one + 1):
        assert (written(float(one), unit) == written(float(more), unit)) == (float(one) == float(more))


@pytest.mark.parametrize(
    ("cluster", "asked", "said"),
    [
        ("c20-why.yaml", "a/lost", "is on gone, which is not a node of the cluster, and would go to n1 if recreated"),
        ("c20-why.yaml", "kube-system/static-n1",
         "is a static pod: the kubelet of n1 runs it, and no scheduler places it"),
        ("c36-static.yaml", "kube-system/etcd-n1",
         "is a static pod: the kubelet of n1 runs it, and no scheduler places it"),
        ("c20-why.yaml", "a/evicted", "is finished (Failed) and is not scheduled again"),
        ("c20-why.yaml", "a/web", "would go to n1, the only node"),
        ("c20-why.yaml", "a/other", "would go to n1, the only node"),
        ("c20-why.yaml", "a/nominated", "does not fit the only node: 1 node lacks only 100m cpu"),
        ("c21b-plan-default.yaml", "a/low", "is on n1, the only node"),
    ],
)  # fmt: skip
def test_answer_is_one_true_sentence(command: Command, cluster: str, asked: str, said: str) -> None:
    done = command("why", asked, "--cluster", cluster)
    assert (done.code, done.out.splitlines()[0]) == (0, f"pod {asked} {said}")


def test_scheduler_name_limits_the_pods_that_are_evaluated(command: Command) -> None:
    done = command("why", "a/other", "--cluster", "c20-why.yaml", "--scheduler-name", "policysched")
    assert (done.code, done.out) == (
        0,
        "pod a/other is scheduled by volcano, but only policysched (from --scheduler-name) is evaluated; "
        "set --scheduler-name volcano\n",
    )


def write(folder: Path, objects: list[Object]) -> str:
    (folder / "cluster.yaml").write_text(yaml.dump_all(objects))
    return str(folder / "cluster.yaml")


def test_room_that_is_kept_is_said_to_be(command: Command, tmp_path: Path) -> None:
    kept = {**pod("kept", 3, priority=5), "status": {"nominatedNodeName": "n1"}}
    cluster = write(tmp_path, [node("n1"), kept, pod("web", 2)])
    done = command("why", "web", "--cluster", cluster)
    assert (done.code, done.problem, done.out.splitlines()[0]) == (
        0, "",
        "pod default/web does not fit the only node: "
        "1 node lacks only 1 cpu beside default/kept, for which the node is nominated",
    )  # fmt: skip


def test_a_pod_on_a_node_is_not_said_to_go_there(command: Command, tmp_path: Path) -> None:
    ssd = {"disk": "ssd"}
    objects = [
        node("n1", labels=ssd),
        node("n2"),
        bound("on", "n1", nodeSelector=ssd),
        bound("off", "n2", nodeSelector=ssd),
    ]
    cluster = write(tmp_path, objects)
    asked = [("on",), ("on", "n2"), ("off",), ("off", "n2")]
    answers = [command("why", *one, "--cluster", cluster).out.splitlines()[0] for one in asked]
    assert answers == [
        "pod default/on is on n1, the only one of 2 nodes that fits",
        "pod default/on does not fit n2; missing: nodeSelector disk=ssd; it is on n1",
        *["pod default/off is on n2 but would not fit it if recreated; missing: nodeSelector disk=ssd; "
          "it would go to n1 if recreated"] * 2,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "note"),
    [
        ({"priority": 5, "preemptionPolicy": "Never"}, "preemption is not possible: preemptionPolicy=Never"),
        ({"priority": 5}, "preemption would not help: policies protect default/low (policy keep/preemption: false)"),
        ({}, ""),
    ],
)
def test_preemption_is_noted_only_if_a_reader_can_change_something(
    command: Command, tmp_path: Path, spec: dict[str, object], note: str
) -> None:
    keep = policy("keep", preemption={"require": "false"})
    cluster = write(tmp_path, [node("n1"), bound("low", "n1", 3), pod("web", 2, **spec), keep])
    done = command("why", "web", "--cluster", cluster)
    assert [line for line in done.problem.splitlines() if line.startswith("note: preemption")] == (
        [f"note: {note}"] if note else []
    )
