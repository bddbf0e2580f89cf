"""The unschedulable and gated pods, indexed by the plugin whose hint has to let them go and by what would help.

A change costs only the pods that it may concern: a gated pod stands under its gate alone, because nothing else can let
it in; the others under every plugin that rejected them, and there under the keys of the plugin's index if it has one.
It knows nothing of what the keys mean.

Source: pkg/scheduler/backend/queue/unschedulable_pods.go.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from policysched.framework import Change, HintIndex
from policysched.model.objects import Pod
from policysched.schedule.queue.queued_pod import QueuedPod, Stage

log = logging.getLogger(__name__)
MOST_KEYS: Final = 1 << 12
"""A pod of more keys than this is found by every change."""
FEW_KEYS: Final = 64
"""Up to how many keys a pod is filed under, however many pods there are."""
MOST_TOGETHER: Final = 1 << 16
"""How many keys pods of more have together, those that wait for one plugin; the next is found by every change."""
PORTION = 100
"""How many pods are moved before others get their turn."""
ENTRIES: Final = 64
"""How many claims and volumes of a pod, at which its gates look, count as a pod more."""
MOST_MOVES = 8
"""How many changes are kept apart."""
Act = Callable[[Sequence[QueuedPod]], int]
"""Does something with waiting pods and counts those that it moved."""
Pods = dict[str, QueuedPod]
"""Pods by identity."""


@dataclass(slots=True)
class _Held:
    """The pods that wait for a word of one plugin."""

    pods: Pods = field(default_factory=dict)
    by_key: dict[Hashable, Pods] = field(default_factory=dict)
    without_keys: Pods = field(default_factory=dict)
    """Those that every change finds."""
    many: int = 0
    """How many keys those have that have more than a few."""

    def add(self, queued: QueuedPod, keys: Collection[Hashable] | None) -> Collection[Hashable] | None:
        """Take in a pod; return the keys under which it is filed, None where every change finds it."""
        self.pods[queued.identity] = queued
        if keys is not None and len(keys) > FEW_KEYS:
            if self.many + len(keys) > MOST_TOGETHER:
                keys = None
            else:
                self.many += len(keys)
        if keys is None:
            self.without_keys[queued.identity] = queued
        for key in keys or ():
            self.by_key.setdefault(key, {})[queued.identity] = queued
        return keys

    def discard(self, identity: str, keys: Collection[Hashable] | None) -> None:
        del self.pods[identity]
        if keys is None:
            del self.without_keys[identity]
        elif len(keys) > FEW_KEYS:
            self.many -= len(keys)
        for key in keys or ():
            filed = self.by_key[key]
            del filed[identity]
            if not filed:
                del self.by_key[key]


class _Listing(NamedTuple):
    """Where a pod is listed, and by what."""

    profile: str
    keys: Mapping[str, Collection[Hashable] | None]
    """The keys by plugin."""
    gated: bool
    pod: Pod
    indexes: Mapping[str, HintIndex]

    def is_for(self, queued: QueuedPod, plugins: frozenset[str], indexes: Mapping[str, HintIndex]) -> bool:
        """Return whether the pod would be listed in the same places."""
        return (
            _has_same_keys(self.pod, queued.pod)
            and self.indexes is indexes
            and self.profile == queued.profile
            and self.gated is bool(queued.gated_by)
            and self.keys.keys() == plugins
        )


class UnschedulablePods:
    """Unschedulable and gated pods by identity and by (profile, plugin)."""

    __slots__ = ("_held", "_listed_under", "_pods", "gated")

    def __init__(self) -> None:
        self._pods: Pods = {}
        self._listed_under: dict[str, _Listing] = {}
        self._held: dict[tuple[str, str], _Held] = {}
        self.gated = 0

    def add(self, queued: QueuedPod, indexes: Mapping[str, HintIndex]) -> None:
        """Add a pod, or list it anew where it or its plugins changed; it comes behind the others.

        Args:
            queued: The pod.
            indexes: The indexes of its profile's plugins, by name.
        """
        plugins = frozenset((queued.gated_by,)) if queued.gated_by else queued.rejectors | queued.pending
        known, gated = self._listed_under.get(queued.identity), bool(queued.gated_by)
        if known is not None and self._pods[queued.identity] is queued and known.is_for(queued, plugins, indexes):
            self._put_last(queued, known)
            self._listed_under[queued.identity] = known._replace(pod=queued.pod)
            return
        self.discard(queued.identity)
        self._pods[queued.identity] = queued
        keys = {
            plugin: self._held.setdefault((queued.profile, plugin), _Held()).add(
                queued, _keys(queued, indexes.get(plugin))
            )
            for plugin in plugins
        }
        self._listed_under[queued.identity] = _Listing(queued.profile, keys, gated, queued.pod, indexes)
        self.gated += gated

    def discard(self, identity: str) -> None:
        """Drop a pod if it is here."""
        if self._pods.pop(identity, None) is None:
            return
        listing = self._listed_under.pop(identity)
        self.gated -= listing.gated
        for plugin, keys in listing.keys.items():
            held = self._held[listing.profile, plugin]
            held.discard(identity, keys)
            if not held.pods:
                del self._held[listing.profile, plugin]

    def _put_last(self, queued: QueuedPod, listing: _Listing) -> None:
        """Put a pod behind the others, but where it is found by a key: it may have very many."""
        identity = queued.identity
        for pods in (self._pods, *(self._held[listing.profile, plugin].pods for plugin in listing.keys)):
            del pods[identity]
            pods[identity] = queued

    def held_by(self, profile: str, plugin: str) -> Mapping[str, QueuedPod]:
        """Return the pods that wait for a word of this plugin, by identity."""
        held = self._held.get((profile, plugin))
        return {} if held is None else held.pods

    def found_by(self, change: Change, profile: str, plugin: str, index: HintIndex | None) -> Mapping[str, QueuedPod]:
        """Return the pods that wait for a word of this plugin and that a change may concern, by identity.

        Args:
            change: The change.
            profile: The profile of the pods.
            plugin: The plugin's name.
            index: The index of its hints about such changes; without one all its pods are given.

        Cost: O(keys of the change + pods found by them).
        """
        held = self._held.get((profile, plugin))
        if held is None:
            return {}
        keys = None if index is None else _led_to(change, index, held.by_key)
        if keys is None:
            return held.pods
        found: Pods = dict(held.without_keys)
        for key in keys:
            found |= held.by_key.get(key, {})
        return found

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)


def _keys(queued: QueuedPod, index: HintIndex | None) -> Collection[Hashable] | None:
    """Return the keys of a pod; None where it has none, too many, or they cannot be told."""
    if index is None:
        return None
    keys: set[Hashable] = set()
    try:
        for key in index.filed_under(queued.pod):
            keys.add(key)
            if len(keys) > MOST_KEYS:
                return None
    except Exception:
        log.exception(
            'cannot compute which changes can help pod "%s"; evaluating its queueing hints on every change',
            queued.pod.key,
        )
        return None
    return keys


def _has_same_keys(one: Pod, other: Pod) -> bool:
    """Return whether two versions of a pod are the same in all that its keys depend on."""
    if one is other:
        return True
    before, after = one.metadata, other.metadata
    return (
        before.labels == after.labels
        and before.namespace == after.namespace
        and one.status.resource_claim_statuses == other.status.resource_claim_statuses
        and one.spec == other.spec
    )


def _led_to(change: Change, index: HintIndex, filed: Mapping[Hashable, Pods]) -> Collection[Hashable] | None:
    """Return the keys that a change leads to; None for all, which is so where they cannot be told."""
    try:
        return index.leads_to(change, filed)
    except Exception:
        log.exception(
            "cannot compute which pods a change of %s can help; evaluating the queueing hints of all pods",
            change.resource.value,
        )
        return None


def portion(pods: Iterable[QueuedPod]) -> int:
    """Return how many of some pods are looked at in one go: fewer where they state very many claims and volumes.

    Cost: O(pods that are).
    """
    count = weight = 0
    for queued in pods:
        if weight >= PORTION:
            break
        spec = queued.pod.spec
        weight += 1 + (len(spec.resource_claims) + len(spec.volumes)) // ENTRIES
        count += 1
    return count


class Moves:
    """Changes with the waiting pods that they concern, in order: a portion at a time, while pods are popped.

    Of changes that come faster than their pods can be asked about only so many are kept apart; then nobody is asked any
    more, and the pods that any of them concerns are all tried again. No work is done in one piece, however many pods
    wait and however fast changes come.

    Args:
        retry: Moves pods without asking anybody.
    """

    def __init__(self, retry: Act) -> None:
        self._retry = retry
        self._moves: deque[_Move] = deque()

    def add(self, pods: Iterable[QueuedPod], act: Act, now: float) -> None:
        """Take pods to do something with, but for those that are tried meanwhile."""
        self._moves.append(_Move(pods, act, now))
        if len(self._moves) > MOST_MOVES:
            concerned = dict.fromkeys(
                chain.from_iterable(move.pods for move in self._moves)
            )  # no step of ours for each
            self._moves = deque([_Move(concerned, self._retry, now)])

    def go_on(self) -> None:
        """Do a portion."""
        if self._moves and not self._moves[0].go_on():
            self._moves.popleft()

    def __len__(self) -> int:
        return len(self._moves)


class _Move:
    def __init__(self, pods: Iterable[QueuedPod], act: Act, since: float) -> None:
        self.pods = deque(pods)
        self._act = act
        self._since = since

    def go_on(self) -> bool:
        """Do a portion; return whether there is more."""
        some = [self.pods.popleft() for _ in range(portion(self.pods))]
        self._act(
            [queued for queued in some if queued.stage is Stage.UNSCHEDULABLE and queued.queued_at <= self._since]
        )
        return bool(self.pods)
