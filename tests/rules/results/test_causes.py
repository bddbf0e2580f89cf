"""The reason of a rejection names what is missing now, though the rule was and is unknown for the node."""

from __future__ import annotations

import random

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from tests.build import cluster, node, pod
from tests.rules.build import filtering, policy_set

PROFILE = default_profile(off=("ImageLocality",))
"""Without the plugin for which every node that comes makes all pod classes anew."""
OWN = " and pod.priority < 5"
CORES, DISKS = 'avg(number(node.labels["cores"]))', 'avg(number(node.labels["disk"]))'


def reason(of: Engine) -> str:
    """Why a node without any labels but its zone is rejected."""
    [text] = make_record(of.decide(pod()))["rejected"]["a"]["reasons"]
    return str(text)


@pytest.mark.parametrize("own", ["", OWN])
@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ('(count(node.ready) by node.labels[if(cluster.nodes > 1, "rack", "row")]) >= 0', "row", "rack"),
        (f'({CORES} by node.labels["zone"]) + (count(node.ready) by node.labels["disk"]) > 0', "cores", "disk"),
        (f"if(cluster.nodes > 1, {CORES} by node.name, {DISKS} by node.name) > 0", "disk", "cores"),
        (f"{CORES} + {DISKS} > 0", "cores", "disk"),
        (f"if(cluster.nodes > 1, {DISKS}, {CORES} - 5) > 0", "cores", "disk"),
    ],
)
def test_a_reason_names_what_is_missing_now(text: str, before: str, after: str, own: str) -> None:
    def engine(around: Cluster) -> Engine:
        return Engine(around, policy_set(p={"filters": filtering(text + own)}).join(PROFILE), random.Random(0))

    around = cluster(node("a", labels={"zone": "z"}))
    live = engine(around)
    assert reason(live) == f'policy p/r: node.labels["{before}"] is missing'
    around.set_node(node("b", labels={"zone": "z", "cores": "4"}))
    assert reason(live) == reason(engine(around)) == f'policy p/r: node.labels["{after}"] is missing'


@pytest.mark.parametrize("own", ["", OWN])
@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (f"({CORES} + {DISKS} > 0) ?? false", "cores", "disk"),
        (f"((if(cluster.nodes > 1, {DISKS}, {CORES} - 5) > 0) ?? false) and not node.cordoned", "cores", "disk"),
    ],
)
def test_a_reason_names_what_is_missing_behind_a_default(text: str, before: str, after: str, own: str) -> None:
    def engine(around: Cluster) -> Engine:
        rules = filtering(text + own, message="no room")
        return Engine(around, policy_set(p={"filters": rules}).join(PROFILE), random.Random(0))

    around = cluster(node("a", labels={"zone": "z"}))
    live = engine(around)
    assert reason(live) == f'policy p/r: no room (node.labels["{before}"] is missing)'
    around.set_node(node("b", labels={"zone": "z", "cores": "4"}))
    assert reason(live) == reason(engine(around)) == f'policy p/r: no room (node.labels["{after}"] is missing)'
