"""The recorder as a Python plugin: at every point it does what its script says, and records that it was asked.

It is the Go recorder of `tests/oracle/recorder` once more, in the methods of out-of-tree plugins.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, Final

import numpy as np

from policysched.framework import Action, Code, Hint, PostFilterResult, Resource, Scores, Status
from policysched.framework.out_of_tree.methods import (
    GroupPlacement,
    Placement,
    PreBindPreFlightResult,
    PreFilterResult,
)
from policysched.framework.out_of_tree.node_info import NodeInfo
from policysched.framework.pod_groups import FeasiblePlacement, PlacementScorePlugin, PodGroupContext
from policysched.model.objects import Pod, PodGroup
from policysched.model.release import Release
from policysched.plugins.pod_group_placements import TopologyPlacementGenerator

CYCLE: Final = "recorder/cycle"
CODES: Final = {code.text: code for code in Code}
ACTIONS: Final = {
    "Add": Action.ADD, "Delete": Action.DELETE, "UpdateNodeLabel": Action.UPDATE_NODE_LABEL,
    "UpdateNodeAllocatable": Action.UPDATE_NODE_ALLOCATABLE, "UpdatePodLabel": Action.UPDATE_POD_LABEL,
}  # fmt: skip
RESOURCES: Final = {"Node": (Resource.NODE,), "Pod": (Resource.ASSIGNED_POD, Resource.PENDING_POD)}
Answer = Mapping[str, Any]


@dataclass
class Record:
    """What the plugins of a run were asked."""

    now: Callable[[], float]
    pod: Callable[[str], Pod | None]
    """Looks up a pod by name."""
    calls: list[dict[str, Any]] = field(default_factory=list)
    cycles: Counter[str] = field(default_factory=Counter)

    def called(self, **what: Any) -> None:
        """Note a call."""
        self.calls.append({"at": self.now(), **{key: value for key, value in what.items() if value}})


class Recorder:
    """A plugin at all points but QueueSort."""

    def __init__(self, script: Mapping[str, Any], record: Record, handle: Any) -> None:
        self.script, self.record, self.handle = script, record, handle
        self.name: str = script["name"]
        self._asked: Counter[str] = Counter()

    def _ask(self, point: str, state: Any, pod: Pod, **more: Any) -> Answer:
        """Record a call and return what the script answers to it in this cycle of the pod."""
        name = pod.metadata.name
        number = state.get(CYCLE)
        if number is None:
            self.record.cycles[name] += 1
            number = self.record.cycles[name]
            state.write(CYCLE, number)
        self.record.called(
            point=point, plugin=self.name, pod=name, cycle=number, notes=self._note(state, point), **more
        )
        return self._act(self._answer(point, name, number))

    def _note(self, state: Any, point: str) -> str:
        """Write that a point was asked, and return which others were before."""
        key = f"recorder/notes/{self.name}"
        before: tuple[str, ...] = state.get(key, ())
        if point not in before:
            state.write(key, (*before, point))
        return " ".join(one for one in before if one != point)

    def _answer(self, point: str, pod: str, number: int) -> Answer:
        found = self.script.get("answers", {}).get(point, {}).get(pod, ())
        answer: Answer = found[number - 1] if number <= len(found) else {}
        return answer

    def _act(self, answer: Answer) -> Answer:
        for deed in answer.get("do", ()):
            self.do(deed)
        return answer

    def do(self, deed: Mapping[str, Any]) -> None:
        """Do something to another pod."""
        act, name, plugin = deed["act"], deed["pod"], deed.get("plugin", "")
        pending: list[str] = []
        if act == "activate":
            self._activate(name)
        else:
            found = [one for one in self.handle.waiting_pods() if one.assumed.pod.metadata.name == name]
            for one in found:
                pending = sorted(one.pending)
                if act == "allow":
                    one.allow(plugin)
                else:
                    one.reject(plugin, deed.get("message", ""))
        self.record.called(point=act, plugin=plugin, pod=name, waiting=pending)

    def _activate(self, name: str) -> None:
        pod = self.record.pod(name)
        if pod is not None:
            self.handle.activate([pod])

    def pre_enqueue(self, pod: Pod) -> Status | None:
        name = pod.metadata.name
        self.record.called(point="preEnqueue", plugin=self.name, pod=name)
        self._asked[name] += 1
        return _status(self._act(self._answer("preEnqueue", name, self._asked[name])))

    def pre_filter(self, state: Any, pod: Pod, nodes: Sequence[Any]) -> Any:
        found = self._ask("preFilter", state, pod, nodes=_names(nodes))
        return PreFilterResult(found["nodes"]) if "nodes" in found else _status(found)

    def filter(self, state: Any, pod: Pod, node: Any) -> Status | None:
        found = self._ask("filter", state, pod, node=node.name, pods=_pods(node))
        return _status(_by_node(found, node.name))

    def post_filter(self, state: Any, pod: Pod, statuses: Any) -> Any:
        shown = {node.name: _line(statuses.get(node.name)) for node in self.handle.nodes}
        found = self._ask("postFilter", state, pod, statuses=shown)
        return PostFilterResult(_status(found), found.get("nominate"))

    def pre_score(self, state: Any, pod: Pod, nodes: Sequence[Any]) -> Status | None:
        return _status(self._ask("preScore", state, pod, nodes=_names(nodes)))

    def score(self, state: Any, pod: Pod, node: Any) -> tuple[int, Status | None]:
        mine = _by_node(self._ask("score", state, pod, node=node.name, pods=_pods(node)), node.name)
        return mine.get("score", 0), _status(mine)

    def reserve(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        return _status(self._ask("reserve", state, pod, node=node_name))

    def unreserve(self, state: Any, pod: Pod, node_name: str) -> None:
        self._ask("unreserve", state, pod, node=node_name)

    def permit(self, state: Any, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        found = self._ask("permit", state, pod, node=node_name)
        return _status(found), found.get("timeout", 0.0)

    def pre_bind_pre_flight(self, state: Any, pod: Pod, node_name: str) -> tuple[PreBindPreFlightResult, Status | None]:
        found = self._ask("preBindPreFlight", state, pod, node=node_name)
        return PreBindPreFlightResult(found.get("allowParallel", False)), _status(found)

    async def pre_bind(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        found = self._ask("preBind", state, pod, node=node_name)
        await asyncio.sleep(found.get("pause", 0.0) + self.script.get("takes", 0.0))
        return _status(found)

    async def bind(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        found = self._ask("bind", state, pod, node=node_name)
        await asyncio.sleep(found.get("pause", 0.0) + self.script.get("takes", 0.0))
        if "code" not in found:  # what a script does not say is left to the next plugin
            return Status(Code.SKIP)
        if found["code"] == "Success":
            await self.handle.client.bind(pod, node_name)
        return _status(found)

    async def post_bind(self, state: Any, pod: Pod, node_name: str) -> None:
        self._ask("postBind", state, pod, node=node_name)


class FilterExtensions(Recorder):
    """With AddPod and RemovePod."""

    def add_pod(self, state: Any, pod: Pod, other: Pod, node: Any) -> Status | None:
        found = self._ask("addPod", state, pod, node=node.name, other=other.metadata.name)
        return _status(_by_node(found, node.name))

    def remove_pod(self, state: Any, pod: Pod, other: Pod, node: Any) -> Status | None:
        found = self._ask("removePod", state, pod, node=node.name, other=other.metadata.name)
        return _status(_by_node(found, node.name))


class ScoreExtensions(Recorder):
    """With NormalizeScore."""

    def normalize_score(self, state: Any, pod: Pod, scores: list[Any]) -> Status | None:
        found = self._ask("normalizeScore", state, pod, scores={one.name: one.score for one in scores})
        for one in scores:
            one.score = _by_node(found, one.name).get("score", one.score)
        return _status(found)


class Hinter(Recorder):
    """With the events that it waits for."""

    def events(self) -> Sequence[Hint]:
        return [
            Hint(resource, reduce(or_, (ACTIONS[name] for name in one["actions"])), _hint(one))
            for one in self.script["events"]
            for resource in RESOURCES[one["resource"]]
        ]


class Sorter:
    """A QueueSort plugin and nothing else."""

    def __init__(self, name: str) -> None:
        self.name = name

    def less(self, a: Any, b: Any) -> bool:
        return _rank(a.pod) < _rank(b.pod)


class Ranking:
    """A Score plugin and nothing else, which is not recorded."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self.name = script["name"]
        self._ranks: Mapping[str, int] = script["ranks"]

    def score(self, _state: Any, _pod: Pod, node: Any) -> tuple[int, None]:
        return self._ranks.get(node.name, 0), None


class Dividing:
    """Placements by the label of a script, with scores: a plugin that is not recorded."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self.name = script["name"]
        self._key: str = script["placements"]["key"]
        self._ranks: Mapping[str, int] = script["placements"]["ranks"]

    def generate_placements(self, _state: Any, _group: PodGroup, nodes: Sequence[NodeInfo]) -> list[Placement]:
        values = sorted({node.labels[self._key] for node in nodes if self._key in node.labels})
        return [Placement(one, [node.name for node in nodes if node.labels.get(self._key) == one]) for one in values]

    def score_placement(self, _state: Any, _group: PodGroup, placement: GroupPlacement) -> int:
        return self._ranks.get(placement.name, 0)


class Placing(TopologyPlacementGenerator, PlacementScorePlugin):
    """TopologyPlacementGenerator with scores by name, which is not recorded."""

    def __init__(self, script: Mapping[str, Any], release: Release) -> None:
        super().__init__(empty_is_domain=release.empty_topology_is_domain, quotes=release.messages_name_pod_group)
        self.name = script["name"]
        self._ranks: Mapping[str, int] = script["placements"]["ranks"]

    def score_placements(self, context: PodGroupContext, feasible: Sequence[FeasiblePlacement]) -> Scores:  # noqa: ARG002
        return np.array([self._ranks.get(one.placement.name, 0) for one in feasible], np.int64)


class Counting:
    """Filter and Reserve plugin that allows so many pods with the label app=reserved or app=counted on a node."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        self.name = script["name"]
        self._most: int = script["most"]
        self._reserved = 0

    def filter(self, _state: Any, pod: Pod, node: Any) -> Status | None:
        there = sum(other.metadata.labels.get("app") == "counted" for other in node.pods)
        full = _is_reserving(pod) and self._reserved + there >= self._most
        return Status(Code.UNSCHEDULABLE, ("already reserved",)) if full else None

    def reserve(self, _state: Any, pod: Pod, _node_name: str) -> None:
        self._reserved += _is_reserving(pod)

    def unreserve(self, _state: Any, pod: Pod, _node_name: str) -> None:
        self._reserved -= _is_reserving(pod)


def _is_reserving(pod: Pod) -> bool:
    return pod.metadata.labels.get("app") == "reserved"


def make(script: Mapping[str, Any], record: Record, handle: Any, release: Release) -> Any:
    """Make the plugin of a script with just the methods that it is to have."""
    if "ranks" in script:
        return Ranking(script)
    if "most" in script:
        return Counting(script)
    if "placements" in script:
        return Dividing(script) if script["placements"].get("key") else Placing(script, release)
    if script.get("sort"):
        return Sorter(script["name"])
    bases: list[type] = [] if script.get("plainFilter") else [FilterExtensions]
    bases += [] if script.get("plainScore") else [ScoreExtensions]
    bases += [] if script.get("events") is None else [Hinter]
    return type("ScriptedRecorder", (*bases, Recorder), {})(script, record, handle)


def _rank(pod: Pod) -> str:
    return pod.metadata.labels.get("rank", "")


def _hint(script: Mapping[str, Any]) -> Any:
    answer = script.get("hint", "")
    if not answer:
        return None

    def helps(*_: Any) -> bool:
        if answer == "Error":
            raise ValueError("the hint failed")
        return bool(answer == "Queue")

    return helps


def _status(answer: Answer) -> Status | None:
    code = answer.get("code", "")
    if code in ("", "Success"):
        return None
    return Status(CODES[code], tuple(answer.get("reasons", ())))


def _by_node(answer: Answer, node: str) -> Answer:
    found: Answer = answer.get("byNode", {}).get(node, {})
    return found


def _names(nodes: Sequence[Any]) -> list[str]:
    return sorted(node.name for node in nodes)


def _pods(node: Any) -> list[str]:
    return sorted(pod.metadata.name for pod in node.pods)


def _line(status: Status | None) -> str:
    if status is None:
        return "Success|"
    return "|".join((status.code.text, status.plugin, *sorted(status.reasons)))
