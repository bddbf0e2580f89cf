"""Out-of-tree plugins for tests: a plugin that logs each call and returns prepared answers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from policysched.framework import Cluster, Code, Status, unresolvable, unschedulable
from policysched.framework.cycle_state import CycleState
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.framework.out_of_tree.methods import NodeScore
from policysched.framework.out_of_tree.node_info import NodeInfo
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.plugins.default_binder import DefaultBinder
from policysched.plugins.queue_plugins import PrioritySort
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from tests.build import cluster, node, pod

SKIPPED = Status(Code.SKIP)
PLUGIN = "X"
ABC = ("a", "b", "c")
SOFT, HARD, PENDING = unschedulable("soft"), unresolvable("hard"), Status(Code.PENDING, ("not yet",))
FAILED = Status(Code.ERROR, ("out of order",))
NIL = "%!w(<nil>)"


class Scripted:
    """A plugin at every extension point except QueueSort, which logs its calls and returns prepared answers.

    Args:
        log: List to which calls are appended.
        name: Name of the plugin in the log.
        answers: Answer of each method; a mapping is by node, an exception is raised, a function is called with the
            arguments.
    """

    def __init__(self, log: list[str] | None = None, name: str = PLUGIN, **answers: Any) -> None:
        self.log = [] if log is None else log
        self.name = name
        self.answers = {"bind": SKIPPED, "score": 0, **answers}

    def _said(self, point: str, *given: Any, about: str = "") -> Any:
        self.log.append(f"{self.name}.{point} {about}".strip())
        answer = self.answers.get(point)
        if isinstance(answer, Mapping):
            answer = answer.get(about.rsplit(maxsplit=1)[-1])
        if callable(answer):
            answer = answer(*given)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def pre_enqueue(self, pod: Pod) -> Any:
        return self._said("pre_enqueue", pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Any:
        return self._said("pre_filter", state, pod, nodes, about=names(nodes))

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> Any:
        return self._said("add_pod", state, pod, other, node, about=f"{other.metadata.name} {node.name}")

    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> Any:
        return self._said("remove_pod", state, pod, other, node, about=f"{other.metadata.name} {node.name}")

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Any:
        return self._said("filter", state, pod, node, about=node.name)

    def post_filter(self, state: CycleState, pod: Pod, statuses: Any) -> Any:
        return self._said("post_filter", state, pod, statuses)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Any:
        return self._said("pre_score", state, pod, nodes, about=names(nodes))

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> Any:
        return self._said("score", state, pod, node, about=node.name)

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> Any:
        return self._said("normalize_score", state, pod, scores, about=str([one.score for one in scores]))

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self._said("reserve", state, pod, node_name, about=node_name)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self._said("unreserve", state, pod, node_name, about=node_name)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self._said("permit", state, pod, node_name, about=node_name)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self._said("pre_bind_pre_flight", state, pod, node_name, about=node_name)

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self._said("pre_bind", state, pod, node_name, about=node_name)

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self._said("bind", state, pod, node_name, about=node_name)

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> Any:
        return self._said("post_bind", state, pod, node_name, about=node_name)


def names(nodes: Sequence[NodeInfo]) -> str:
    return ",".join(sorted(node.name for node in nodes))


POINTS = {
    "pre_enqueue": "pre_enqueue",
    "filters": "filter",
    "post_filters": "post_filter",
    "reserves": "reserve",
    "permits": "permit",
    "pre_binds": "pre_bind",
    "binds": "bind",
    "post_binds": "post_bind",
}


def adapted(*plugins: Any, handle: PluginHandle | None = None) -> list[OutOfTreePlugin]:
    """Return plugins as a profile needs them, by default with the name PLUGIN."""
    shared = PluginHandle("default-scheduler") if handle is None else handle
    return [OutOfTreePlugin(getattr(one, "name", PLUGIN), one, shared) for one in plugins]


def profile_with(*plugins: Any, before: Sequence[Any] = (), after: Sequence[Any] = (), weight: int = 1) -> Profile:
    """Return a profile with out-of-tree plugins at the points that they implement, and other filters around them."""
    handle = PluginHandle("default-scheduler")
    made = adapted(*plugins, handle=handle)

    def having(*methods: str) -> tuple[Any, ...]:
        return tuple(one for one in made if any(hasattr(one.plugin, method) for method in methods))

    parts: dict[str, Any] = {point: having(method) for point, method in POINTS.items()}
    parts["filters"] = (*before, *having("filter", "filter_nodes", "pre_filter"), *after)
    parts["binds"] += (DefaultBinder(),)
    scores = tuple((one, weight) for one in having("score", "score_nodes"))
    return Profile("default-scheduler", PrioritySort(), scores=scores, handle=handle, **parts)


def engine_of(*plugins: Any, around: Cluster | None = None, **parts: Any) -> Engine:
    return Engine(around or cluster(*map(node, ABC)), profile_with(*plugins, **parts), random.Random(0))


def decided(*plugins: Any, of: Any = None, **parts: Any) -> Decision:
    return engine_of(*plugins, **parts).decide(of or pod())


def rejected(decision: Decision) -> dict[str, tuple[str, str]]:
    found = make_record(decision).get("rejected", {})
    return {name: (status["plugin"], ", ".join(status["reasons"])) for name, status in found.items()}
