"""TopologyPlacementGenerator, PodGroupPodsCount, and the score of NodeResourcesFit for placements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policysched.framework import Code, Status
from policysched.framework.cycle_state import CycleState
from policysched.framework.pod_groups import CandidatePlacement, FeasiblePlacement, PodGroupContext
from policysched.model.objects import Node, PodGroup, ResourceRequirements
from policysched.model.release import Release
from policysched.plugins.pod_group_placements import PodGroupPodsCount
from policysched.plugins.registry import plugin_named
from policysched.schedule.groups.placement_points import all_nodes
from policysched.state.cluster import Cluster
from tests.build import node, pod
from tests.groups import TOPOLOGY, TOPOLOGY_38, group, member

RACK = "example.com/rack"
UNKNOWN = "cannot determine domain for already scheduled pods: "


def racked(name: str, rack: str | None, **fields: Any) -> Node:
    return node(name, labels={} if rack is None else {RACK: rack}, **fields)


def context(of: PodGroup, *objects: Any, release: Release = TOPOLOGY_38) -> PodGroupContext:
    cluster = Cluster(release=release)
    cluster.set_pod_group(of)
    for one in objects:
        if isinstance(one, Node):
            cluster.set_node(one)
        else:
            cluster.set_pod(one)
    return PodGroupContext(of, [member()], cluster, CycleState())


def generated(of: PodGroup, *objects: Any, release: Release = TOPOLOGY_38) -> Any:
    about = context(of, *objects, release=release)
    parent = all_nodes(about.cluster)
    plugin: Any = plugin_named("TopologyPlacementGenerator", release=release)
    found = plugin.generate_placements(about, parent)
    if isinstance(found, Status):
        return found
    if len(found) == 1 and found[0] is parent:
        return None
    names = about.cluster.nodes.names
    return {one.name: [names[row] for row in one.rows] for one in found}


NODES = (racked("n1", "b"), racked("n2", "a"), racked("n3", None), racked("n4", "b"), racked("n5", ""))


def test_each_value_of_the_key_is_a_placement() -> None:
    assert generated(group(key=RACK), *NODES) == {"a": ["n2"], "b": ["n1", "n4"]}
    assert generated(group(key="example.com/none"), *NODES) == {}
    assert generated(group(key=RACK)) == {}


def test_empty_value_is_a_domain_in_v1_37() -> None:
    found = generated(group(key=RACK), *NODES, release=TOPOLOGY)
    assert found == {"": ["n5"], "a": ["n2"], "b": ["n1", "n4"]}


def test_group_without_a_key_is_not_constrained() -> None:
    assert generated(group(), *NODES) is None


def test_placed_members_pin_the_domain() -> None:
    assert generated(group(key=RACK), *NODES, member(on="n4")) == {"b": ["n1", "n4"]}


@pytest.mark.parametrize(
    ("release", "on", "message"),
    [
        (TOPOLOGY_38, ("n1", "n2"), 'more than 1 domain found for pod group: "b", "a"'),
        (TOPOLOGY, ("n1", "n2"), "more than 1 domain found for pod group: b, a"),
        (TOPOLOGY_38, ("n3",), "no topology domain found for pod default/p0"),
        (TOPOLOGY_38, ("n5",), "empty topology domain found for pod default/p0"),
        (
            TOPOLOGY_38,
            ("gone",),
            'getting node for pod default/p0: nodeinfo not found for node name "gone"',
        ),
    ],
)
def test_placed_members_without_a_common_domain_are_an_error(
    release: Release, on: tuple[str, ...], message: str
) -> None:
    placed = [member(f"p{number}", on=one) for number, one in enumerate(on)]
    found = generated(group(key=RACK), *NODES, *placed, release=release)
    assert found == Status(Code.ERROR, (f"{UNKNOWN}{message}",))


def test_placed_members_on_an_empty_domain_pin_it_in_v1_37() -> None:
    assert generated(group(key=RACK), *NODES, member(on="n5"), release=TOPOLOGY) == {"": ["n5"]}


def placements(about: PodGroupContext, **pods: Any) -> list[FeasiblePlacement]:
    """The racks of a cluster with the members that fit there."""
    labels = about.cluster.nodes.labels(RACK)
    code = about.cluster.strings.find
    found = []
    for rack, fitting in pods.items():
        rows = np.flatnonzero(labels[: about.cluster.nodes.size] == code(rack))
        found.append(FeasiblePlacement(CandidatePlacement(rack, rows), fitting, [""] * len(fitting)))
    return found


def counted(about: PodGroupContext, **pods: Any) -> Any:
    plugin, feasible = PodGroupPodsCount(), placements(about, **pods)
    found = plugin.normalize_placements(about, feasible, plugin.score_placements(about, feasible))
    return found if isinstance(found, Status) else found.tolist()


def test_placements_with_more_members_score_higher() -> None:
    about = context(group(), racked("n1", "a"), racked("n2", "b"), member("old", on="n1"))
    one, two, three = (member(f"p{number}") for number in range(3))
    assert counted(about, a=[one, two, three], b=[one]) == [100, 50]


def test_placements_without_members_cannot_be_compared() -> None:
    found = counted(context(group(), racked("n1", "a"), racked("n2", "b")), a=[], b=[])
    assert found == Status(Code.ERROR, ("no pods from pod group are assigned to any of the candidate placements",))


def filled(about: PodGroupContext, release: Release = TOPOLOGY_38, **pods: Any) -> Any:
    plugin: Any = plugin_named("NodeResourcesFit", {"scoringStrategy": {"type": "LeastAllocated"}}, release)
    return plugin.score_placements(about, placements(about, **pods)).tolist()


def test_fuller_placements_score_higher_whatever_the_strategy() -> None:
    """Cpu and memory have equal weights: rack a is used by 3 of 4 and 3 of 8, rack b by 2 of 8 and 2 of 16."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    nodes = (racked("n1", "a", allocatable=amounts), *(racked(f"n{n}", "b", allocatable=amounts) for n in (2, 3)))
    asked: dict[str, Any] = {"requests": {"cpu": 1, "memory": "1Gi"}}
    about = context(group(), *nodes, pod("old", on="n1", **asked))
    both = [member("p0", **asked), member("p1", **asked)]
    assert filled(about, a=both, b=both) == [(75 + 37) // 2, (25 + 12) // 2]


def test_extended_resources_count_where_members_request_them() -> None:
    gpu = "example.com/gpu"
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    nodes = (racked("n1", "a", allocatable={**amounts, gpu: "4"}), racked("n2", "b", allocatable=amounts))
    resources = [{"name": gpu, "weight": 1}]
    plugin: Any = plugin_named(
        "NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated", "resources": resources}}, TOPOLOGY_38
    )
    about = context(group(), *nodes)
    asking, plain = [member(requests={gpu: 1})], [member(requests={"cpu": 1})]
    assert plugin.score_placements(about, placements(about, a=asking, b=asking)).tolist() == [25, 0]
    assert plugin.score_placements(about, placements(about, a=plain, b=plain)).tolist() == [0, 0]


def test_pod_level_requests_count_from_v1_38_on() -> None:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    asked = member(resources=ResourceRequirements(requests={"cpu": "2", "memory": "4Gi"}))
    for release, score in ((TOPOLOGY, [(2 + 2) // 2]), (TOPOLOGY_38, [50])):
        about = context(group(), racked("n1", "a", allocatable=amounts), release=release)
        assert filled(about, release, a=[asked]) == score
