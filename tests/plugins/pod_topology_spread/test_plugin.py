"""PodTopologySpread as a whole: default constraints, errors, and what it declares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import SKIP, Aspect, Cluster, Code, Status
from policysched.model.objects import (
    LabelSelector,
    LabelsSpec,
    Metadata,
    Node,
    OwnerReference,
    Pod,
    ReplicaSet,
    Requirement,
    SelectorSpec,
    Service,
)
from policysched.plugins.pod_topology_spread.constraints import SYSTEM_DEFAULTS, Defaults
from policysched.plugins.pod_topology_spread.plugin import PodTopologySpread
from policysched.schedule.cycle.pod_classes import class_key
from tests.build import cluster, node, pod
from tests.plugins.ask import filtered, rejected
from tests.plugins.pod_topology_spread.build import FOO, HOST, ZONE, ZONES, around, crowd, hard, incoming, scores, soft


def like_service(made: Cluster, selector: dict[str, str] | None = None, namespace: str = "default") -> Cluster:
    metadata = Metadata(name="s", namespace=namespace)
    made.workloads.put(
        Service(metadata=metadata, spec=LabelsSpec(selector={"foo": ""} if selector is None else selector))
    )
    return made


def zoned(names: str = "abxy", without: str = "") -> list[Node]:
    return [node(name, labels={HOST: name} | ({} if name in without else {ZONE: ZONES[name]})) for name in names]


PLAIN = pod("p", labels={"foo": ""})


def test_the_systems_constraints_spread_the_pods_of_a_service() -> None:
    made = like_service(cluster(*zoned(), *crowd(a=2, b=1, y=3)))
    # by zones all are equal: 3 pods in each
    assert scores(PLAIN, made, "abxy") == {"a": 75, "b": 87, "x": 100, "y": 62}
    assert filtered(PodTopologySpread(), PLAIN, made) is SKIP


def test_the_systems_constraints_keep_nodes_without_a_zone() -> None:
    made = like_service(cluster(*zoned(without="abxy"), *crowd(a=4, b=3, x=2, y=1)))
    assert scores(PLAIN, made, "abxy") == {"a": 44, "b": 66, "x": 77, "y": 100}
    listed = PodTopologySpread(Defaults(SYSTEM_DEFAULTS.constraints))
    assert scores(PLAIN, made, "abxy", listed) == {"a": 0, "b": 0, "x": 0, "y": 0}


def test_a_node_without_a_zone_shares_the_domain_of_an_empty_one() -> None:
    nodes = [
        node("a", labels={HOST: "a", ZONE: ""}),
        node("b", labels={HOST: "b"}),
        node("x", labels={HOST: "x", ZONE: "2"}),
    ]
    made = like_service(cluster(*nodes, *crowd(b=4)))
    # one pod weighs log(5) by host names and, two zones being there, log(4) by zones
    raw = {"a": round(4 * np.log(4)) + 6, "b": round(4 * np.log(5)) + 2, "x": 6}
    highest, lowest = max(raw.values()), min(raw.values())
    expected = {name: 100 * (highest + lowest - score) // highest for name, score in raw.items()}
    assert scores(PLAIN, made, "abx") == expected


@pytest.mark.parametrize(
    "made",
    [
        cluster(*zoned()),
        like_service(cluster(*zoned()), {"foo": "other"}),
        like_service(cluster(*zoned()), {}),
        like_service(cluster(*zoned()), {"foo": ""}, "other"),
    ],
)
def test_a_pod_without_constraints_and_workload_is_skipped(made: Cluster) -> None:
    assert PodTopologySpread().prepare_score(PLAIN, made) is SKIP
    assert PodTopologySpread().prepare_filter(PLAIN, made) is SKIP


def test_a_pods_own_constraints_are_in_place_of_the_default_ones() -> None:
    made = like_service(cluster(*zoned()))
    plugin = PodTopologySpread(Defaults((hard(ZONE, 1, None), soft(ZONE, 1, None))))
    assert plugin.prepare_score(incoming(hard(ZONE)), made) is SKIP
    assert plugin.prepare_filter(incoming(soft(ZONE)), made) is SKIP
    assert plugin.prepare_filter(incoming(replace(hard(ZONE), when_unsatisfiable="")), made) is SKIP
    assert PodTopologySpread(Defaults(())).prepare_score(PLAIN, made) is SKIP


def test_default_constraints_of_a_configuration_filter_too() -> None:
    made = like_service(cluster(*zoned(), *crowd(a=1), *crowd("bar", x=4)))
    plugin = PodTopologySpread(Defaults((hard(ZONE, 1, None),)))
    assert rejected(plugin, PLAIN, made) == {"a", "b"}


def owned(of: Pod, name: str) -> Pod:
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=name, controller=True)
    return replace(of, metadata=replace(of.metadata, owner_references=[owner]))


def test_what_selectors_were_derived_from_moves_the_generation_once_it_was_asked_for() -> None:
    made, plugin, of = cluster(*zoned()), PodTopologySpread(), owned(PLAIN, "r")
    replicas = ReplicaSet(metadata=Metadata(name="r", namespace="default"), spec=SelectorSpec(selector=FOO))
    before = plugin.stamp(made)
    made.workloads.put(replicas)
    assert plugin.stamp(made) == before
    assert plugin.prepare_score(of, made) is not SKIP
    made.workloads.put(replicas)
    assert plugin.stamp(made) == before
    made.workloads.drop(replicas)
    assert plugin.stamp(made) != before
    assert plugin.prepare_score(of, made) is SKIP
    assert PodTopologySpread(Defaults(())).stamp(made) == PodTopologySpread(Defaults(())).stamp(cluster())


def test_siblings_of_two_controllers_are_two_classes_only_where_controllers_matter() -> None:
    assert class_key(owned(PLAIN, "r")) != class_key(owned(PLAIN, "s"))
    assert class_key(owned(PLAIN, "r")) != class_key(PLAIN)
    assert class_key(owned(incoming(soft()), "r")) == class_key(owned(incoming(soft()), "s"))
    job = owned(PLAIN, "j")
    owner = replace(job.metadata.owner_references[0], kind="Job", api_version="batch/v1")
    assert class_key(replace(job, metadata=replace(job.metadata, owner_references=[owner]))) == class_key(PLAIN)


LIKE = LabelSelector(match_expressions=(Requirement(key="foo", operator="Like", values=("x",)),))


def test_a_selector_that_is_not_valid_fails_the_point_that_needs_it() -> None:
    made, plugin = cluster(*around()), PodTopologySpread()
    failing: Any = plugin.prepare_filter(incoming(soft(), hard(selector=LIKE)), made)
    assert isinstance(failing, Status)
    assert failing.code is Code.ERROR
    where = "get constraints from pod: obtaining pod's hard topology spread constraints: "
    assert failing.message == f'{where}"Like" is not a valid label selector operator'
    assert not isinstance(plugin.prepare_score(incoming(soft(), hard(selector=LIKE)), made), Status)
    failing = plugin.prepare_score(incoming(soft(selector=LIKE)), made)
    assert failing.message.startswith("calculating preScoreState: obtaining pod's soft topology spread constraints: ")


def test_the_plugin_reads_what_can_change_its_answer() -> None:
    plugin = PodTopologySpread()
    assert plugin.filter_reads == Aspect.LABELS | Aspect.TAINTS | Aspect.PODS
    assert plugin.normalizes
    state: Any = plugin.prepare_score(incoming(soft()), cluster(*around()))
    assert (plugin.score(state, slice(0, 4)) == 1).all()
