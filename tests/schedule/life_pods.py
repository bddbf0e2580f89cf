"""Pods that the random tests decide: several classes, some with constraints."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from policysched.model.objects import (
    Affinity,
    ContainerPort,
    LabelSelector,
    NodeAffinitySpec,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Requirement,
    RestartRule,
    Toleration,
    TopologySpreadConstraint,
)
from tests.build import pod
from tests.schedule.world_objects import GPU, HOST, IMAGES, ZONE, owned


def named(*names: str) -> Affinity:
    terms = [
        NodeSelectorTerm(match_fields=(Requirement(key="metadata.name", operator="In", values=(name,)),))
        for name in names
    ]
    return Affinity(node_affinity=NodeAffinitySpec(required=NodeSelector(node_selector_terms=terms)))


def wanted() -> list[Pod]:
    """Return pods of several classes, each of which represents its class."""
    image, other = list(IMAGES)[:2]
    return [
        pod("plain"),
        pod("small", requests={"cpu": "500m", "memory": "64Mi"}, labels={"team": "a"}),
        pod("big", requests={"cpu": 6}, labels={"team": "b"}),
        pod("gpu", requests={GPU: 1}, namespace="a"),
        pod("tolerant", tolerations=[Toleration(operator="Exists")]),
        pod("selecting", node_selector={"disk": "x"}),
        pod("named", affinity=named("n1", "n7", "absent")),
        pod("lost", affinity=named("absent")),
        pod("ports", ports=[ContainerPort(container_port=1, host_port=8080)]),
        pod("image", image=image.removesuffix(":latest"), namespace="b"),
        pod("other-image", image=other),
        pod("system", priority=2_000_000_000),
        pod("lonely", labels={"app": "lonely"}, namespace="a"),
        *unusual(),
        *spread(),
    ]


def unusual() -> list[Pod]:
    """Return pods with rarely used fields."""
    nominated = pod("nominated", requests={"cpu": 2})
    restarting = pod("features")
    rules = [RestartRule(action="RestartAllContainers")]
    containers = [replace(one, restart_policy_rules=rules) for one in restarting.spec.containers]
    annotated = pod("annotated")
    annotations = {"disks": "x|y", "key": "disk"}
    return [
        replace(nominated, status=replace(nominated.status, nominated_node_name="n3")),
        replace(restarting, spec=replace(restarting.spec, containers=containers)),
        replace(annotated, metadata=replace(annotated.metadata, annotations=annotations)),
        owned(pod("owned", requests={"cpu": 1}), "rs"),
    ]


def spread() -> list[Pod]:
    """Return pods with spread constraints, some of which use the same counts."""
    team = LabelSelector(match_labels={"team": "a"})
    expression = LabelSelector(match_expressions=(Requirement(key="team", operator="NotIn", values=("b",)),))

    def over(key: str, max_skew: int, *, hard: bool = True, selector: LabelSelector = team, **more: Any) -> Any:
        return TopologySpreadConstraint(
            max_skew=max_skew,
            topology_key=key,
            when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
            label_selector=selector,
            **more,
        )

    def made(name: str, *constraints: Any, **more: Any) -> Pod:
        return pod(name, labels={"team": "a"}, topology_spread_constraints=list(constraints), **more)

    return [
        made("zones", over("zone", 2)),
        made("hosts", over(HOST, 1, node_taints_policy="Honor"), over(ZONE, 3, selector=expression)),
        made("domains", over("disk", 3, min_domains=3), node_selector={"zone": "x"}),
        made("softly", over("zone", 1, hard=False), node_selector={"disk": "y"}),
        made("both", over(ZONE, 2), over(HOST, 1, hard=False), over("disk", 2, hard=False, match_label_keys=["team"])),
        owned(pod("like-its-own", labels={"team": "b"}), "other"),
    ]
