"""The methods of out-of-tree plugins, one protocol per extension point of kube-scheduler's framework.

An out-of-tree plugin is a plain object that implements the methods of its extension points. Its name is the name under
which it is registered. It needs no base class. A class that inherits the protocols of its methods is checked by type
checkers and completed by editors.

- Returning None means success at every extension point. `Code` documents what each status code does to the pod.
- If a method raises, or returns a value of another type, the pod's scheduling attempt fails with an error that names
  the plugin and the extension point. Other pods and plugins are not affected.
- Methods of the scheduling cycle must not be `async def`. PreBind, Bind and PostBind may be `async def`; if they are
  not, they run in a worker thread.

By default Filter and Score are called for every pod, because their results may depend on anything. A plugin may set an
attribute `reads` to an `Aspect`. This declares that the results of Filter and Score depend only on these aspects of the
node and on the fields that define the pod's class (`schedule.cycle.pod_classes`). Then the scheduler reuses the results
of unchanged nodes for the next pod of the class. All other methods are called for every pod.

Source: k8s.io/kube-scheduler/framework/interface.go, v0.36.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policysched.framework.binding import Wait
from policysched.framework.cycle_state import CycleState
from policysched.framework.out_of_tree.node_info import NodeArrays, NodeInfo
from policysched.framework.plugin import Hint, Mask
from policysched.framework.pod_groups import PlacementProgress
from policysched.framework.post_filter import PostFilterResult
from policysched.framework.status import Code, Status
from policysched.model.objects import Pod, PodGroup


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The result of PreFilter that contains the names of the only nodes on which the pod may run.

    Every other node is rejected as UnschedulableAndUnresolvable.
    """

    node_names: Collection[str]


@dataclass(frozen=True, slots=True)
class PreBindPreFlightResult:
    """The result of PreBindPreFlight: how PreBind of the plugin runs for a pod."""

    allow_parallel: bool = False
    """Whether PreBind may run in parallel with neighbouring plugins that allow this, too."""


@dataclass(slots=True)
class NodeScore:
    """The score of one node, which NormalizeScore changes in place."""

    name: str
    score: int


@dataclass(frozen=True, slots=True)
class Placement:
    """A set of nodes on which all members of a pod group can be placed, as PlacementGenerate returns it."""

    name: str
    node_names: Collection[str]


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """A placement that a pod group fits, with the nodes of its members."""

    name: str
    node_names: Collection[str]
    assignments: Sequence[tuple[Pod, str]]
    """The members that fit, each with the name of its node."""


@dataclass(slots=True)
class PlacementScore:
    """The score of one placement, which NormalizePlacementScore changes in place."""

    name: str
    score: int


@dataclass(frozen=True, slots=True)
class QueuedPodInfo:
    """A queued pod, as QueueSort compares it."""

    pod: Pod
    timestamp: float
    """The time at which the pod entered the queue. Units: seconds of a monotonic clock."""


PreFilterAnswer: TypeAlias = "Status | PreFilterResult | None"
ScoreAnswer: TypeAlias = "int | tuple[int, Status | None]"
PlacementsAnswer: TypeAlias = "Sequence[Placement] | Status | None"
PermitAnswer: TypeAlias = "Status | Wait | tuple[Status, float] | None"
"""The result of Permit; `Wait(10)` is equal to `(Status(Code.WAIT), 10)`, with the timeout in seconds."""
PreFlightAnswer: TypeAlias = (
    "PreBindPreFlightResult | tuple[PreBindPreFlightResult | None, Status | None] | Status | None"
)
BindingAnswer: TypeAlias = "Status | Awaitable[Status | None] | None"
Rejections: TypeAlias = Sequence[tuple[Mask, Status]]
"""Pairs of a mask of rejected nodes and their status; a node in several masks has the status of the first pair.

Shapes: each mask (R,).
"""

MAY_WAIT: Final = frozenset({"pre_bind", "bind", "post_bind"})
"""The methods that can be `async def`; other methods run in the scheduling cycle, which does not wait."""


class PreEnqueueMethods(Protocol):
    """PreEnqueue: decides whether a pod may enter the active queue."""

    @abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Return None to admit the pod, or a status that gates the pod until one of the plugin's events."""


class QueueSortMethods(Protocol):
    """QueueSort: orders the active queue."""

    @abstractmethod
    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Return whether pod `a` is scheduled before pod `b`."""


class PreFilterMethods(Protocol):
    """PreFilter: runs once per scheduling attempt, before any node is filtered."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> PreFilterAnswer:
        """Return a PreFilterResult, a status that rejects the pod, or a status with code SKIP to skip Filter."""


class PreFilterExtensionMethods(Protocol):
    """AddPod and RemovePod: update the plugin's state as if other pods were added to or removed from a node."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> Status | None:
        """Update `state` as if pod `other` were added to the node."""

    @abstractmethod
    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> Status | None:
        """Update `state` as if pod `other` were removed from the node."""


class FilterMethods(Protocol):
    """Filter: rejects nodes that cannot run the pod, one node per call."""

    @abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return a status that rejects the node, or None; called for nodes that passed all earlier filters."""


class FilterNodesMethods(Protocol):
    """Filter in one call for all nodes as arrays, instead of `filter` for each node."""

    @abstractmethod
    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeArrays) -> Rejections | None:
        """Return the rejected nodes with their statuses, or None to reject no node."""


class NodeStatuses(Protocol):
    """The statuses with which nodes were rejected for a pod."""

    def get(self, node_name: str) -> Status | None:
        """Return the status of a node, or None if no node has this name."""

    def nodes(self, code: Code) -> Sequence[NodeInfo]:
        """Return the nodes whose status has this code."""


class PostFilterMethods(Protocol):
    """PostFilter: runs if no node is feasible, to make the pod schedulable, for example by preemption."""

    @abstractmethod
    def post_filter(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> PostFilterResult | Status | None:
        """Return a result or only a status: success ends PostFilter, a rejection passes on to the next plugin."""


class PreScoreMethods(Protocol):
    """PreScore: runs once per scheduling attempt, before the feasible nodes are scored."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Return None, a status with code ERROR, or a status with code SKIP to skip Score."""


class ScoreMethods(Protocol):
    """Score: scores feasible nodes, one node per call."""

    @abstractmethod
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> ScoreAnswer:
        """Return an integer score: 0 to 100, or any value if `normalize_score` maps it into 0 to 100."""


class ScoreNodesMethods(Protocol):
    """Score in one call for all nodes as arrays, instead of `score` for each node."""

    @abstractmethod
    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeArrays) -> NDArray[np.integer]:
        """Return integer scores, one per node.

        Shapes: (R,).
        """


class NormalizeScoreMethods(Protocol):
    """NormalizeScore: maps the plugin's scores into 0 to 100."""

    @abstractmethod
    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> Status | None:
        """Change the scores of nodes in place."""


class ReserveMethods(Protocol):
    """Reserve and Unreserve: reserve resources for a pod on the chosen node, and release them on failure."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Reserve resources; if any later step fails, `unreserve` of all Reserve plugins runs in reverse order."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Release the resources; must tolerate that `reserve` was not called for the pod."""


class PermitMethods(Protocol):
    """Permit: approves, delays or rejects the binding of a pod."""

    @abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> PermitAnswer:
        """Return None, a rejection, or a `Wait`, which `WaitingPod.allow` and `WaitingPod.reject` end."""


class PreBindPreFlightMethods(Protocol):
    """PreBindPreFlight: reports before PreBind whether PreBind has work to do; optional for a PreBind plugin."""

    @abstractmethod
    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlightAnswer:
        """Return a status with code SKIP if PreBind has nothing to do for the pod.

        A `PreBindPreFlightResult`, alone or as first element of a tuple with a status, allows parallel PreBind.
        """


class PreBindMethods(Protocol):
    """PreBind: does the work that must precede the binding of a pod."""

    @abstractmethod
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> BindingAnswer:
        """Do the work; any status but success fails the attempt, and the pod is retried after a backoff.

        If a plugin that runs in parallel fails, this method is cancelled if it is `async def`.
        """


class BindMethods(Protocol):
    """Bind: binds a pod."""

    @abstractmethod
    def bind(self, state: CycleState, pod: Pod, node_name: str) -> BindingAnswer:
        """Bind the pod, or return a status with code SKIP to leave the binding to the next plugin."""


class PostBindMethods(Protocol):
    """PostBind: is notified after a pod is bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[None] | None:
        """Handle the notification; the result and exceptions are ignored."""


class PlacementGenerateMethods(Protocol):
    """PlacementGenerate: generates the placements of a pod group."""

    @abstractmethod
    def generate_placements(self, state: CycleState, group: PodGroup, nodes: Sequence[NodeInfo]) -> PlacementsAnswer:
        """Return placements with some of the nodes, None for no constraint, or a status that rejects the group.

        The names of the placements must differ and must not contain "/". Several plugins: each combination of their
        placements becomes a placement with the common nodes.
        """


class PlacementFeasibleMethods(Protocol):
    """PlacementFeasible: decides whether a pod group can still be scheduled on a placement."""

    @abstractmethod
    def placement_feasible(
        self, state: CycleState, group: PodGroup, placement: str, progress: PlacementProgress
    ) -> Status | None:
        """Return None, a status with code WAIT to continue with the next member, or UNSCHEDULABLE to end.

        `placement` is the name of the placement. Called before the first member and after each. WAIT after the last
        member rejects the placement.
        """


class PlacementScoreMethods(Protocol):
    """PlacementScore: scores the placements that a pod group fits, if there are several."""

    @abstractmethod
    def score_placement(self, state: CycleState, group: PodGroup, placement: GroupPlacement) -> ScoreAnswer:
        """Return an integer score: 0 to 100, or any value if `normalize_placement_scores` maps it into 0 to 100."""


class NormalizePlacementScoreMethods(Protocol):
    """NormalizePlacementScore: maps the plugin's scores of placements into 0 to 100."""

    @abstractmethod
    def normalize_placement_scores(
        self, state: CycleState, group: PodGroup, scores: list[PlacementScore]
    ) -> Status | None:
        """Change the scores of placements in place."""


class EventMethods(Protocol):
    """Queueing hints: the events that can make a rejected pod schedulable; by default, every event retries the pod."""

    @abstractmethod
    def events(self) -> Sequence[Hint]:
        """Return the events; called once per plugin."""
