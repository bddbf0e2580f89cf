"""Out-of-tree plugins together with extenders: extenders get the nodes that the plugins accept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from policysched.framework import unschedulable
from policysched.model.objects import PodStatus
from tests.build import node, pod
from tests.schedule.out_of_tree import Scripted, profile_with
from tests.schedule.stand import running
from tests.schedule.test_with_extenders import FakeExtender

NODES = [node(name) for name in ("n1", "n2", "n3")]
NOMINATED = structs.replace(pod("a"), status=PodStatus(nominated_node_name="n3"))


async def test_extender_is_asked_about_nodes_that_out_of_tree_filters_let_pass() -> None:
    plugin, extender = Scripted(filter={"n2": unschedulable("no")}, score={"n1": 10, "n3": 20}), FakeExtender()
    async with running(*NODES, of=replace(profile_with(plugin), extenders=(extender,))) as stand:
        await stand.settled(pod("a"))
        assert stand.scheduler.cluster.pods.by_id["default.a"].row == stand.scheduler.cluster.nodes.row_of["n3"]
    assert extender.asked[:2] == [("filter", ("n1", "n3")), ("prioritize", ("n1", "n3"))]


@pytest.mark.parametrize(("passes", "chosen"), [({"n1", "n3"}, "n3"), ({"n1", "n2"}, "n1")])
async def test_nominated_node_that_an_extender_turns_down_is_one_of_all(passes: set[str], chosen: str) -> None:
    plugin = Scripted(filter={"n2": unschedulable("no")}, pre_bind=None)
    extender = FakeExtender(passes=frozenset(passes), prioritizes=False)
    async with running(*NODES, of=replace(profile_with(plugin), extenders=(extender,))) as stand:
        await stand.settled(NOMINATED)
        cluster = stand.scheduler.cluster
        assert cluster.nodes.names[cluster.pods.by_id["default.a"].row] == chosen
    assert extender.asked[0] == ("filter", ("n3",))
    assert extender.asked[1:] == ([] if chosen == "n3" else [("filter", ("n1", "n3"))])
