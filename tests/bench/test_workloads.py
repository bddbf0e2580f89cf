"""The table of workloads, and its objects against those of scheduler_perf."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yaml

from bench.cluster import policies, templates
from bench.cluster.workloads import QUICK, SCHEDULERS, WORKLOADS, Workload
from policysched import check
from policysched.model.decode import decode_node, decode_pod

NAMES = {one.name: one for one in WORKLOADS}
CONTAINER = """
- image: registry.k8s.io/pause:3.10.1
  name: pause
  ports:
  - containerPort: 80
  resources:
    limits: {cpu: 100m, memory: 500Mi}
    requests: {cpu: 100m, memory: 500Mi}
"""
IN_KUBERNETES = {
    "pod-default": "{}",
    "pod-with-pod-affinity": """
      podAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
        - labelSelector: {matchLabels: {color: blue}}
          topologyKey: topology.kubernetes.io/zone
          namespaces: ["sched-1", "sched-0"]""",
    "pod-with-preferred-pod-anti-affinity": """
      podAntiAffinity:
        preferredDuringSchedulingIgnoredDuringExecution:
        - podAffinityTerm:
            labelSelector: {matchLabels: {color: yellow}}
            topologyKey: kubernetes.io/hostname
            namespaces: ["sched-1", "sched-0"]
          weight: 1""",
    "pod-anti-affinity-ns-selector": """
      podAntiAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
        - labelSelector: {matchLabels: {color: green}}
          topologyKey: kubernetes.io/hostname
          namespaceSelector: {matchLabels: {team: devops}}""",
    "pod-with-node-affinity": """
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions:
            - {key: topology.kubernetes.io/zone, operator: In, values: [zone1, zone2]}""",
}
"""The affinity of templates as Kubernetes has it, v1.36."""


@pytest.mark.parametrize("name", IN_KUBERNETES)
def test_templates_are_those_of_kubernetes(name: str) -> None:
    spec = templates.pod(name, "p", "default")["spec"]
    assert spec["containers"] == yaml.safe_load(CONTAINER)
    assert spec.get("affinity", {}) == yaml.safe_load(IN_KUBERNETES[name])


@pytest.mark.parametrize("name", NAMES)
def test_workloads_are_whole(name: str) -> None:
    small = NAMES[name].sized(min(NAMES[name].nodes, 50), 20)
    steps = list(small.standing())
    objects = [one for step in steps for one in step] + list(small.measured_pods())
    keys = [(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in objects]
    assert len(keys) == len(set(keys))
    namespaces = {name for kind, _, name in keys if kind == "Namespace"} | {"default"}
    assert {namespace for _, namespace, _ in keys} - {""} <= namespaces
    nodes = {decode_node(one).metadata.name for one in objects if one["kind"] == "Node"}
    pods = [decode_pod(one) for one in objects if one["kind"] == "Pod"]
    assert {pod.spec.node_name for pod in pods} - {""} <= nodes
    assert len(small.measured_names()) == 20
    assert len(nodes) == small.nodes


@pytest.mark.parametrize("name", NAMES)
def test_placed_pods_have_room(name: str) -> None:
    one = NAMES[name].sized(min(NAMES[name].nodes, 500), None)
    placed = Counter(pod["spec"]["nodeName"] for pod in list(one.standing())[-1] if "nodeName" in pod["spec"])
    assert max(placed.values(), default=0) <= one.pods_per_node
    if placed and one.nodes > 1:
        assert max(placed.values()) - min(placed[name] for name in one.node_names) <= 1


def test_names_are_known() -> None:
    assert set(QUICK) <= NAMES.keys()
    assert len(NAMES) == len(WORKLOADS)
    assert {one.against for one in WORKLOADS} - {""} <= NAMES.keys()
    assert all(set(one.schedulers) <= set(SCHEDULERS) for one in WORKLOADS)


def test_other_sizes_keep_pods_a_node() -> None:
    one = NAMES["pod-affinity"]
    small = one.sized(500, 100)
    assert (small.nodes, small.measured.count) == (500, 100)
    assert small.before[0].count * one.nodes == one.before[0].count * 500
    assert one.sized(None, None).measured == one.measured
    assert one.sized(None, 10**9).measured == one.measured


def test_same_objects_are_made_once() -> None:
    assert NAMES["mixed-churn"].same_objects() == NAMES["unschedulable-churn"].same_objects()
    assert NAMES["basic"].same_objects() != NAMES["mixed-churn"].same_objects()
    assert NAMES["apps"].same_objects() != NAMES["apps-20-policies"].same_objects()


def test_volumes_are_bound_to_the_claims_of_their_pods() -> None:
    small: Workload = NAMES["csi-volumes"].sized(10, 5)
    objects: list[dict[str, Any]] = [one for step in small.standing() for one in step] + list(small.measured_pods())
    claims = {one["metadata"]["name"]: one["spec"]["volumeName"] for one in objects if one["kind"].endswith("Claim")}
    volumes = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == "PersistentVolume"}
    used = [
        each["persistentVolumeClaim"]["claimName"]
        for one in objects if one["kind"] == "Pod" for each in one["spec"]["volumes"]
    ]  # fmt: skip
    assert sorted(used) == sorted(claims)
    assert all(volumes[volume]["claimRef"]["name"] == claim for claim, volume in claims.items())
    assert len({one["csi"]["volumeHandle"] for one in volumes.values()}) == len(volumes)


def test_policies_compile() -> None:
    made = list(policies.make(20))
    assert check(made) == []
    assert {len(one["spec"]["filters"]) + len(one["spec"]["scores"]) for one in made} == {5}
