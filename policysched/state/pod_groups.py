"""`PodGroups`: the pod groups of a cluster, each with its object and its members.

A member is unscheduled (pending, with a scheduler name of this process), assumed or assigned. The cluster changes the
state of members when pods are placed, assumed, forgotten and removed; the scheduler adds unscheduled members. The group
cycle may call `get`, `of_pod` and `note_scheduled`, and read groups and members. Members are never changed directly.

Source: pkg/scheduler/backend/cache/podgroupstate.go, framework/plugins/gangscheduling/hierarchy_tracker.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from policysched.model.objects import Pod, PodGroup
from policysched.state.placed.pods import pod_id


def group_key(pod: Pod) -> str:
    """Return `namespace/name` of the pod group that a pod names; empty if it names none."""
    named = pod.spec.scheduling_group
    if named is None or not named.pod_group_name:
        return ""
    return f"{pod.metadata.namespace}/{named.pod_group_name}"


@dataclass(slots=True, eq=False)
class GroupState:
    """A pod group: its object, which may not exist yet, and its members by identity, in the order of their changes."""

    key: str
    """`namespace/name`."""
    group: PodGroup | None = None
    unscheduled: dict[str, Pod] = field(default_factory=dict)
    assumed: dict[str, Pod] = field(default_factory=dict)
    assigned: dict[str, Pod] = field(default_factory=dict)
    initially_scheduled: str = ""
    """UID of the object that the scheduler has reported as scheduled; empty if there was none."""

    @property
    def scheduled(self) -> Iterator[Pod]:
        """The members that are assigned or assumed."""
        return chain(self.assigned.values(), self.assumed.values())

    @property
    def scheduled_count(self) -> int:
        """Number of members that are assigned or assumed."""
        return len(self.assigned) + len(self.assumed)

    @property
    def count(self) -> int:
        """Number of members."""
        return len(self.unscheduled) + self.scheduled_count

    @property
    def has_quorum(self) -> bool:
        """Whether the object exists and there are at least as many members as have to be scheduled together."""
        return self.group is not None and self.count >= self.group.min_count

    @property
    def is_empty(self) -> bool:
        """Whether there is neither an object nor a member."""
        return self.group is None and not self.count


class PodGroups:
    """The pod groups by key, with or without objects."""

    __slots__ = ("_group_of", "_states")

    def __init__(self) -> None:
        self._states: dict[str, GroupState] = {}
        self._group_of: dict[str, GroupState] = {}
        """The group of each member, by identity."""

    def get(self, key: str) -> GroupState | None:
        """Return a group that has an object or members.

        Args:
            key: `namespace/name`.
        """
        return self._states.get(key)

    def of_pod(self, pod: Pod) -> GroupState | None:
        """Return the group that a pod names; None if it names none, or one without object and members."""
        return self._states.get(group_key(pod))

    def put(self, group: PodGroup) -> None:
        """Add or replace the object of a group."""
        self._state(group.key).group = group

    def drop(self, group: PodGroup) -> None:
        """Remove the object of a group; its members stay."""
        state = self._states.get(group.key)
        if state is not None:
            state.group = None
            self._drop_if_empty(state)

    def await_pod(self, pod: Pod) -> None:
        """Add a pending pod as an unscheduled member, or take its new version; an assumed member stays assumed."""
        key = group_key(pod)
        if not key:
            return
        identity = pod_id(pod)
        state = self._enter(identity, key)
        if identity not in state.assumed:
            state.assigned.pop(identity, None)
            state.unscheduled[identity] = pod

    def assume(self, pod: Pod) -> None:
        """Make a member assumed."""
        key = group_key(pod)
        if key:
            identity = pod_id(pod)
            state = self._enter(identity, key)
            state.unscheduled.pop(identity, None)
            state.assumed[identity] = pod

    def assign(self, pod: Pod) -> None:
        """Make a pod with a node an assigned member."""
        key = group_key(pod)
        if key:
            identity = pod_id(pod)
            state = self._enter(identity, key)
            state.unscheduled.pop(identity, None)
            state.assumed.pop(identity, None)
            state.assigned[identity] = pod

    def remove(self, identity: str) -> None:
        """Remove a pod from its group."""
        state = self._group_of.pop(identity, None)
        if state is not None:
            for members in (state.unscheduled, state.assumed, state.assigned):
                members.pop(identity, None)
            self._drop_if_empty(state)

    def note_scheduled(self, group: PodGroup) -> None:
        """Record that the object of a group has been reported as scheduled."""
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
        """Return the group of a pod; a pod of the same identity in another group leaves that group."""
        state = self._group_of.get(identity)
        if state is not None and state.key == key:
            return state
        self.remove(identity)
        state = self._group_of[identity] = self._state(key)
        return state

    def _drop_if_empty(self, state: GroupState) -> None:
        if state.is_empty:
            del self._states[state.key]
