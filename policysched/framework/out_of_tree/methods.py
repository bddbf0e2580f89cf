"""The methods of out-of-tree plugins, in the shape of kube-scheduler's framework: one pod, one node at a time.

An out-of-tree plugin is a plain object with the methods of the points where it acts; these protocols say what each is
given and may answer. It needs no base class and no name: it has the name under which it is registered.

A missing answer (None) is success everywhere. What the queue does after each code stands beside `Code`. A method that
raises, or answers anything else than what stands here, fails the pod's attempt with an error that names plugin and
point; nothing else fails. Points that belong to the scheduling cycle answer at once; PreBind, Bind and PostBind may be
`async def`, and run in a thread of their own where they are not.

What a plugin answers may depend on any field of the pod, and on anything else: it is asked anew about each pod. One
that has an attribute `reads`, an `Aspect`, says more: its Filter and Score depend on nothing but these aspects of the
node at hand and the fields of the pod that make its class, `schedule.cycle.pod_classes`. Then a node that has not
changed in them is not asked about again for the next pod of the class. All other methods are called for each pod.

Source: k8s.io/kube-scheduler/framework/interface.go, v0.36.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policysched.framework.binding import Wait
from policysched.framework.cycle_state import CycleState
from policysched.framework.out_of_tree.node_info import NodeArrays, NodeInfo
from policysched.framework.plugin import Hint, Mask
from policysched.framework.post_filter import PostFilterResult
from policysched.framework.status import Code, Status
from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The only nodes that can take the pod, by name; all others are UnschedulableAndUnresolvable."""

    node_names: Collection[str]


@dataclass(frozen=True, slots=True)
class PreBindPreFlightResult:
    """How PreBind may run for a pod."""

    allow_parallel: bool = False
    """Beside the PreBind of plugins that stand next to it and say the same."""


@dataclass(slots=True)
class NodeScore:
    """A node's score, which NormalizeScore changes in place."""

    name: str
    score: int


@dataclass(frozen=True, slots=True)
class QueuedPodInfo:
    """A waiting pod as QueueSort compares it."""

    pod: Pod
    timestamp: float
    """When it entered the queue. Units: seconds of a clock that never goes back."""


PreFilterAnswer: TypeAlias = "Status | PreFilterResult | None"
ScoreAnswer: TypeAlias = "int | tuple[int, Status | None]"
PermitAnswer: TypeAlias = "Status | Wait | tuple[Status, float] | None"
"""A status with code WAIT needs its timeout beside it, in seconds: `Wait(10)` is the same as `(Status(WAIT), 10)`."""
PreFlightAnswer: TypeAlias = (
    "PreBindPreFlightResult | tuple[PreBindPreFlightResult | None, Status | None] | Status | None"
)
BindingAnswer: TypeAlias = "Status | Awaitable[Status | None] | None"
Rejections: TypeAlias = Sequence[tuple[Mask, Status]]
"""Which nodes are rejected, and the status; of several for one node the first counts."""


class PreEnqueueMethods(Protocol):
    """PreEnqueue: may keep a pod out of the active queue."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Return a rejection, or None to let the pod in."""


class QueueSortMethods(Protocol):
    """QueueSort: orders the active queue."""

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Return whether one pod goes before another."""


class PreFilterMethods(Protocol):
    """PreFilter: looks at the pod once, before nodes are filtered."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> PreFilterAnswer:
        """Return the only nodes that can match, a rejection, or a status with code SKIP: Filter is left out then."""


class PreFilterExtensionMethods(Protocol):
    """AddPod and RemovePod: keep what PreFilter wrote right in a what-if of other pods on a node."""

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> Status | None:
        """Take into account that another pod would be on the node."""

    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> Status | None:
        """Take into account that another pod would not be on the node."""


class FilterMethods(Protocol):
    """Filter: says which nodes can take the pod."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return why a node cannot take the pod; it is asked about nodes that all filters before it let pass."""


class FilterNodesMethods(Protocol):
    """Filter in its array form, in the place of `filter`: one call for all nodes."""

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: NodeArrays) -> Rejections | None:
        """Return which nodes cannot take the pod."""


class NodeStatuses(Protocol):
    """What kept a pod off the nodes."""

    def get(self, node_name: str) -> Status | None:
        """Return the status of a node, None for a name that no node has."""

    def nodes(self, code: Code) -> Sequence[NodeInfo]:
        """Return the nodes that have a status of this code."""


class PostFilterMethods(Protocol):
    """PostFilter: looks for a way to make a pod fit that no node could take."""

    def post_filter(self, state: CycleState, pod: Pod, statuses: NodeStatuses) -> PostFilterResult | Status | None:
        """Return a result, or a status alone: success ends PostFilter, a rejection leaves it to the next plugin."""


class PreScoreMethods(Protocol):
    """PreScore: looks at the nodes that are left, before they are scored."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Return None, an error, or a status with code SKIP: Score is left out then."""


class ScoreMethods(Protocol):
    """Score: says how good each node is."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> ScoreAnswer:
        """Return a score, 0 to 100 unless `normalize_score` makes it so."""


class ScoreNodesMethods(Protocol):
    """Score in its array form, in the place of `score`: one call for all nodes."""

    def score_nodes(self, state: CycleState, pod: Pod, nodes: NodeArrays) -> NDArray[np.integer]:
        """Return the scores of nodes, whole numbers."""


class NormalizeScoreMethods(Protocol):
    """NormalizeScore: brings a plugin's own scores into 0 to 100."""

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> Status | None:
        """Change the scores in place."""


class ReserveMethods(Protocol):
    """Reserve and Unreserve: hold for a pod what it needs on its node, and give it back."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Hold it; after a failure `unreserve` is called for all plugins at Reserve, in reverse."""

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Give it back, if anything is held: this may be called where `reserve` was not."""


class PermitMethods(Protocol):
    """Permit: lets a pod be bound, wait, or go."""

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> PermitAnswer:
        """Return None, a rejection, or a `Wait`: then `WaitingPod.allow` and `reject` end the waiting."""


class PreBindMethods(Protocol):
    """PreBind: does what must be done before a pod is bound."""

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlightAnswer:
        """Return a status with code SKIP where there is nothing to do; a plugin may do without this method.

        A `PreBindPreFlightResult`, alone or before a status in a tuple, says whether plugins may run beside it.
        """

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> BindingAnswer:
        """Do it. The attempt fails after any answer but success, and the pod is tried again after a backoff.

        Where it runs beside others and one of them fails, it is cancelled if it is `async def`.
        """


class BindMethods(Protocol):
    """Bind: binds a pod."""

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> BindingAnswer:
        """Bind it, or return a status with code SKIP, which leaves it to the next plugin."""


class PostBindMethods(Protocol):
    """PostBind: hears that a pod is bound."""

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> Awaitable[None] | None:
        """Record it; whatever happens here changes nothing."""


class EventMethods(Protocol):
    """Queueing hints: which changes can help a pod that the plugin rejected; without them any change does."""

    def events(self) -> Sequence[Hint]:
        """Name the changes; it is asked once."""
