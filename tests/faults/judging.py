"""What must be so after a fault: every pod bound once, none lost, the state a fresh list's, room used, memory back."""

from __future__ import annotations

import time

from tests.faults.scene import Outcome, Scene


def judge(scene: Scene, outcome: Outcome, memory: float) -> None:
    """Look at everything, and write down what was seen.

    Args:
        scene: The cluster, with no fault any more.
        outcome: Where it is written down.
        memory: What the schedulers took after the same work without a fault. Units: MiB.
    """
    began = time.monotonic()
    if not scene.comes_true(lambda: not scene.unbound()):
        outcome.lost = scene.unbound()
    scene.comes_true(lambda: scene.apart() in {0, None}, 30)
    outcome.right_after = time.monotonic() - began
    outcome.apart = scene.apart()
    outcome.wrong += scene.wrong()
    outcome.over = -sum(min(room, 0) for room in scene.room().values())
    if not outcome.lost:
        _room_is_used(scene, outcome)
    outcome.twice = [name for name, count in scene.plane.bindings().items() if count > 1 and scene.prefix in name]
    outcome.restarts = sum(one.restarts for one in scene.schedulers)
    scene.empty()
    outcome.kept_mib = scene.memory_mib() - memory


def _room_is_used(scene: Scene, outcome: Outcome) -> None:
    """Fill what is left: a pod beyond waits, and gets the place of one that goes; over-full nodes get none."""
    before = scene.room()
    scene.make_pods(sum(max(room, 0) for room in before.values()))
    if not scene.comes_true(lambda: not scene.unbound()):
        outcome.wrong.append(f"{len(scene.unbound())} pods do not find the room that is left")
        return
    grown = [name for name, room in scene.room().items() if room < min(before[name], 0)]
    if grown:
        outcome.wrong.append(f"over-full nodes got more pods: {', '.join(grown)}")
    [late] = scene.make_pods(1)
    if not scene.comes_true(lambda: scene.waits(late)):
        outcome.wrong.append("a pod more than fits is not said to wait")
        return
    _place_is_used_again(scene, outcome, late)
    scene.comes_true(lambda: scene.apart() in {0, None}, 30)
    if apart := scene.apart():
        outcome.wrong.append(f"the state is not a fresh list's in the end: {apart}")


def _place_is_used_again(scene: Scene, outcome: Outcome, late: str) -> None:
    """Delete a pod of a node that is just full: the one that waits gets its place."""
    full = {name for name, room in scene.room().items() if room == 0}
    gone = next((one for one in scene.pods() if one["spec"].get("nodeName") in full), None)
    if gone is None:
        return
    scene.delete_pods([gone["metadata"]["name"]])
    at = gone["spec"]["nodeName"]
    if not scene.comes_true(lambda: scene.api.get("Pod", late)["spec"].get("nodeName") == at):
        outcome.wrong.append("the place of a pod that went is not used again")
