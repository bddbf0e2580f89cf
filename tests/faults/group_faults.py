"""The faults of pod groups: a scheduler that dies between the bindings of a gang, while pods and nodes come and go."""

from __future__ import annotations

import signal
import time
from collections import Counter
from typing import Final

from aiohttp import web

from tests.controlplane.api import Json
from tests.faults.device_faults import BINDING
from tests.faults.faults import Fault
from tests.faults.groups import GroupScene, bound_pods, counts_as_scheduled, group_of, in_part
from tests.faults.proxy import FaultyProxy
from tests.faults.scene import APART, MILLIS, Scene, taints
from tests.faults.schedulers import UnderTest

MOST_KILLS: Final = 20
RENEWED: Final = 0.45
"""How many of the groups go in a round, and others come for them."""
CHANGED: Final = 3
"""How many of the others lose half of their pods in a round, and get as many again."""
_SETTLED: Final = 0.3
"""How long what was sent before a kill may take to arrive. Units: seconds."""
_AT_REST: Final = 10.0
"""How long conditions may take after the last binding. Units: seconds."""


class Killing:
    """Kills a scheduler each time it is armed: in place of a binding of a gang, after another of the same gang."""

    def __init__(self, scheduler: UnderTest, scene: GroupScene) -> None:
        self._scheduler, self._scene = scheduler, scene
        self._passed: Counter[str] = Counter()
        self.armed = False
        self.kills = 0

    async def __call__(self, proxy: FaultyProxy, request: web.Request) -> bool:  # noqa: ARG002 - what is asked before
        found = BINDING.fullmatch(request.path)
        if found is None:
            return True
        if self.kills > self._scheduler.restarts:
            return False  # the killed one had it ready to send
        group = group_of(found[1])
        if self.armed and 1 <= self._passed[group] < self._scene.least[group]:
            self.armed = False
            self.kills += 1
            self._scheduler.signal(signal.SIGKILL)
            return False
        self._passed[group] += 1
        return True


def _killed_between_bindings(scene: Scene) -> str:
    """Kill the scheduler in each round of churn, and look at all groups before it is started again and afterwards."""
    assert isinstance(scene, GroupScene)
    assert scene.proxy is not None
    [scheduler] = scene.schedulers
    too_large = _make_too_large(scene)
    killing = Killing(scheduler, scene)
    scene.proxy.use(before=killing)
    cut = early = 0
    for number in range(min(MOST_KILLS, scene.size.pods // 10)):
        killing.armed = True
        if number:
            _churn(scene, too_large)
        scene.resume()
        _until_killed(scene, killing, number + 1)
        groups, pods = scene.groups(), scene.pods()
        partly = in_part(groups, pods)
        cut += len(partly)
        early += sum(counts_as_scheduled(one) for one in groups if one["metadata"]["name"] in partly)
        assert not bound_pods(pods)[too_large], "a gang that does not fit is placed in part"
        _come_to_rest(scene, too_large)
    scene.proxy.use()
    _make_room(scene, too_large)
    told = f"{len(scene.least)} groups, {killing.kills} kills, {cut} groups placed in part when it was killed"
    unsaid = sum(not counts_as_scheduled(one) for one in scene.groups())
    return f"{told}, {early} of them counted as scheduled; {unsaid} in the end do not, and are bound"


def _until_killed(scene: GroupScene, killing: Killing, kills: int) -> None:
    """Wait until a scheduler has been killed and is not there, without starting it again."""
    [scheduler] = scene.schedulers
    scheduler.is_kept = False
    scene.until(lambda: killing.kills == kills and not scheduler.running, "the scheduler is killed")
    time.sleep(_SETTLED)
    scheduler.is_kept = True


def _come_to_rest(scene: GroupScene, too_large: str) -> None:
    """Wait until all pods but those of one group are bound; then nothing is placed in part, held or unknown."""
    waiting = {too_large}
    scene.until(lambda: {group_of(one) for one in scene.unbound()} == waiting, "all groups that fit are bound")
    scene.comes_true(lambda: not scene.wrong(), _AT_REST)
    assert not (wrong := scene.wrong()), wrong
    scene.until(lambda: scene.apart() in {0, None}, "the state is a fresh list's")


def _churn(scene: GroupScene, kept: str) -> None:
    """Replace groups, members of other groups and a node with all that is on it; the number of pods stays."""
    names = [name for one in scene.groups() if (name := one["metadata"]["name"]) != kept]
    scene.chance.shuffle(names)
    renewed = round(len(names) * RENEWED)
    gone = scene.delete_groups(names[:renewed])
    members = [_names_of(scene, name) for name in names[renewed : renewed + CHANGED]]
    node = scene.chance.choice([one["metadata"]["name"] for one in scene.api.objects("Node") if _is_plain(one)])
    lost = [name for one in members for name in one[::2]]
    lost += [one["metadata"]["name"] for one in scene.pods(f"?fieldSelector=spec.nodeName={node}")]
    lost = list(dict.fromkeys(lost))
    scene.api.delete("Node", node)
    scene.delete_pods(lost)
    scene.make_node(f"{node.partition('.')[0]}.{len(scene.least)}", scene.size.a_node * MILLIS)
    for group, number in Counter(map(group_of, lost)).items():
        scene.add(group, number)
    scene.make_pods(gone)


def _names_of(scene: GroupScene, group: str) -> list[str]:
    return [name for one in scene.pods() if group_of(name := one["metadata"]["name"]) == group]


def _is_plain(node: Json) -> bool:
    return APART not in taints(node)


def _make_too_large(scene: GroupScene) -> str:
    """Make a gang with a pod more than the only node for it has room for, and give its name."""
    _make_tight(scene, 0)
    size = scene.size.a_node + 1
    selector = {"faults/tight": scene.prefix}
    tolerated = {"key": APART["key"], "operator": "Exists"}
    first, *_ = scene.make_group(size, size, nodeSelector=selector, tolerations=[tolerated])
    return group_of(first)


def _make_tight(scene: GroupScene, number: int) -> None:
    name = f"{scene.prefix}-tight{number}"
    scene.make_node(name, scene.size.a_node * MILLIS, APART)
    scene.api.patch("Node", name, {"metadata": {"labels": {"faults/tight": scene.prefix}}})


def _make_room(scene: GroupScene, too_large: str) -> None:
    """Make a further node for the gang that was too large: it is placed whole; then it goes with its nodes."""
    bound = [name for name in scene.plane.bindings() if group_of(name) == f"default/{too_large}"]
    assert not bound, f"pods of a gang that does not fit were bound: {bound}"
    _make_tight(scene, 1)
    scene.until(lambda: not scene.unbound(), "the gang that was too large is bound")
    scene.delete_groups([too_large])
    for number in range(2):
        scene.api.delete("Node", f"{scene.prefix}-tight{number}")


GROUP_FAULTS: Final = (
    Fault("groups: scheduler killed between bindings", _killed_between_bindings, scene=GroupScene, proxied=True),
)
