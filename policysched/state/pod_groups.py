"""`PodGroups`: the pod groups of a cluster, each with its PodGroup object and its members.

A member is unscheduled (pending, with a scheduler name of this process), assumed or assigned. The cluster changes the
state of members when pods are placed, assumed, forgotten and removed; the scheduler adds unscheduled members. The group
cycle may call `get`, `of_pod` and `note_scheduled`, and read groups and members. Members are never changed directly.

Source: pkg/scheduler/backend/cache/podgroupstate.go, framework/plugins/gangscheduling/hierarchy_tracker.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from policysched.model.objects import Pod, PodGroup
from policysched.model.requests import incoming_requests
from policysched.state.placed.pods import pod_id


def group_key(pod: Pod) -> str:
    """Return `namespace/name` of the pod group to which a pod belongs; empty for a pod without a group."""
    named = pod.spec.scheduling_group
    if named is None or not named.pod_group_name:
        return ""
    return f"{pod.metadata.namespace}/{named.pod_group_name}"


@dataclass(slots=True, eq=False)
class GroupState:
    """A pod group: the PodGroup object, which may not exist yet, and the members in the order of their last changes."""

    key: str
    """`namespace/name` of the group."""
    group: PodGroup | None = None
    unscheduled: dict[str, Pod] = field(default_factory=dict)
    assumed: dict[str, Pod] = field(default_factory=dict)
    assigned: dict[str, Pod] = field(default_factory=dict)
    initially_scheduled: str = ""
    """UID of the PodGroup object whose condition reports that it was scheduled; empty if there is none."""
    version: int = 0
    """A number that changes with the PodGroup object, and if a waiting member is added, removed or changed.

    Placements do not change it. No two groups ever have the same version.
    """
    _requests: Counter[str] | None = None
    """The sum of the requests of the unscheduled members; None if the sum has to be computed again."""

    @property
    def scheduled(self) -> Iterator[Pod]:
        """The members that are bound to a node or assumed."""
        return chain(self.assigned.values(), self.assumed.values())

    @property
    def scheduled_count(self) -> int:
        """Number of members that are bound to a node or assumed."""
        return len(self.assigned) + len(self.assumed)

    @property
    def count(self) -> int:
        """Number of members, scheduled or not."""
        return len(self.unscheduled) + self.scheduled_count

    @property
    def has_quorum(self) -> bool:
        """Whether the PodGroup object exists and the group has at least its minimum number of members."""
        return self.group is not None and self.count >= self.group.min_count

    @property
    def requests(self) -> Mapping[str, int]:
        """The amounts that the unscheduled members request together, by resource; cpu in millicores."""
        if self._requests is None:
            self._requests = Counter()
            for pod in self.unscheduled.values():
                self._requests.update(incoming_requests(pod).by_name)
        return self._requests

    def enlist(self, identity: str, pod: Pod) -> None:
        """Add an unscheduled member, or replace its pod by a new version."""
        before = self.unscheduled.get(identity)
        self.unscheduled[identity] = pod
        if self._requests is not None:
            self._requests.update(incoming_requests(pod).by_name)
            self._requests.subtract({} if before is None else incoming_requests(before).by_name)

    def strike(self, identity: str) -> None:
        """Remove a member from the unscheduled members."""
        pod = self.unscheduled.pop(identity, None)
        if pod is not None and self._requests is not None:
            self._requests.subtract(incoming_requests(pod).by_name)

    @property
    def is_empty(self) -> bool:
        """Whether the group has neither a PodGroup object nor member pods."""
        return self.group is None and not self.count


class PodGroups:
    """The pod groups of a cluster by `namespace/name`, including groups whose PodGroup object does not exist."""

    __slots__ = ("_group_of", "_states", "stamp")

    def __init__(self) -> None:
        self.stamp = 0
        """The highest `version` of any group; it changes with each change of a group."""
        self._states: dict[str, GroupState] = {}
        self._group_of: dict[str, GroupState] = {}
        """The group of each member, by pod identity."""

    def get(self, key: str) -> GroupState | None:
        """Return the pod group with a key; None if it has neither a PodGroup object nor members.

        Args:
            key: `namespace/name`.
        """
        return self._states.get(key)

    def of_pod(self, pod: Pod) -> GroupState | None:
        """Return the group to which a pod belongs; None if it belongs to none, or no member and no PodGroup exists."""
        return self._states.get(group_key(pod))

    def put(self, group: PodGroup) -> None:
        """Add or replace the PodGroup object of a group."""
        state = self._state(group.key)
        before, state.group = state.group, group
        if before is None or _differs(before, group):
            self._note_change(state)

    def drop(self, group: PodGroup) -> None:
        """Remove the PodGroup object of a group; the members stay."""
        state = self._states.get(group.key)
        if state is not None:
            state.group = None
            self._note_change(state)
            self._drop_if_empty(state)

    def await_pod(self, pod: Pod) -> None:
        """Add a pending pod to its group, or replace its version; an assumed member stays assumed."""
        key = group_key(pod)
        if not key:
            return
        identity = pod_id(pod)
        state = self._enter(identity, key)
        if identity not in state.assumed:
            before = state.assigned.pop(identity, None) or state.unscheduled.get(identity)
            state.enlist(identity, pod)
            if before is not None and before.spec != pod.spec:
                self._note_change(state)

    def assume(self, pod: Pod) -> None:
        """Record that a member was assumed on a node."""
        key = group_key(pod)
        if key:
            identity = pod_id(pod)
            state = self._enter(identity, key)
            state.strike(identity)
            state.assumed[identity] = pod

    def forget(self, pod: Pod) -> None:
        """Record that an assumed member is unscheduled again."""
        identity = pod_id(pod)
        state = self._group_of.get(identity)
        if state is not None:
            state.assumed.pop(identity, None)
            state.enlist(identity, pod)

    def assign(self, pod: Pod) -> None:
        """Record that a member is bound to a node."""
        key = group_key(pod)
        if key:
            identity = pod_id(pod)
            state = self._enter(identity, key)
            state.strike(identity)
            state.assumed.pop(identity, None)
            state.assigned[identity] = pod

    def remove(self, identity: str) -> None:
        """Remove a pod from its group."""
        state = self._group_of.pop(identity, None)
        if state is not None:
            state.strike(identity)
            state.assumed.pop(identity, None)
            state.assigned.pop(identity, None)
            self._note_change(state)
            self._drop_if_empty(state)

    def note_scheduled(self, group: PodGroup) -> None:
        """Record that a PodGroup object was reported as scheduled."""
        state = self._states.get(group.key)
        if state is not None:
            state.initially_scheduled = group.metadata.uid

    def __iter__(self) -> Iterator[GroupState]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    def _state(self, key: str) -> GroupState:
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = GroupState(key)
        return state

    def _enter(self, identity: str, key: str) -> GroupState:
        """Return the group with a key, as the group of a pod; remove the pod from any other group."""
        state = self._group_of.get(identity)
        if state is not None and state.key == key:
            return state
        self.remove(identity)
        state = self._group_of[identity] = self._state(key)
        self._note_change(state)
        return state

    def _note_change(self, state: GroupState) -> None:
        self.stamp += 1
        state.version = self.stamp

    def _drop_if_empty(self, state: GroupState) -> None:
        if state.is_empty:
            del self._states[state.key]


def _differs(before: PodGroup, after: PodGroup) -> bool:
    """Return whether two versions of a PodGroup object differ in a field that scheduling reads."""
    return before.spec != after.spec or before.metadata.labels != after.metadata.labels
