"""Plays one fault with one scheduler, from an empty cluster to what was seen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.controlplane.commands import enabled
from tests.controlplane.plane import ControlPlane
from tests.faults.faults import OTHER, Fault
from tests.faults.judging import judge
from tests.faults.proxy import ProxyThread
from tests.faults.scene import Outcome, Scene, Size
from tests.faults.schedulers import UnderTest

_numbers = iter(range(10**6))


def play(fault: Fault, scheduler: str, plane: ControlPlane, size: Size) -> Outcome:
    """Play a fault and judge what comes of it; an outcome says so where it cannot be made."""
    outcome = Outcome(fault.name, scheduler, size.pods, note=fault.why_not(scheduler))
    if outcome.note:
        return outcome
    try:
        _play(fault, outcome, plane, size)
    except AssertionError as error:
        outcome.wrong.append(str(error))
    return outcome


def _play(fault: Fault, outcome: Outcome, plane: ControlPlane, size: Size) -> None:
    with scene_for(fault, outcome.scheduler, plane, size) as scene:
        scene.make_pods(size.pods)
        scene.until(lambda: not scene.unbound(), "all pods are bound before the fault")
        scene.empty()
        memory = scene.memory_mib()
        others = int(size.pods * fault.others)
        scene.left = size.pods - others
        if fault.elects:
            scene.make_left(size.pods // 2)
        else:
            scene.pause()
            scene.make_left()
            scene.make_pods(others, OTHER)
        outcome.note = fault.strike(scene)
        scene.make_left()
        judge(scene, outcome, memory)


@contextlib.contextmanager
def scene_for(fault: Fault, scheduler: str, plane: ControlPlane, size: Size) -> Iterator[Scene]:
    """Give nodes, and the schedulers as the fault wants them; all of it goes at the end."""
    scene = fault.scene(plane, size, f"f{next(_numbers)}")
    with contextlib.ExitStack() as stack:
        stack.callback(scene.clear)
        scene.make_nodes()
        kubeconfig = plane.kubeconfig()
        if fault.proxied:
            scene.proxy = stack.enter_context(ProxyThread(plane, plane.folder / "through-the-proxy"))
            kubeconfig = scene.proxy.kubeconfig
        for _ in range(fault.instances):
            made = UnderTest(
                scheduler,
                plane,
                kubeconfig,
                *enabled(scene.gates),
                elects=fault.elects,
                muted=fault.muted,
                tree=scene.tree,
            )
            scene.schedulers.append(stack.enter_context(made))
        yield scene
