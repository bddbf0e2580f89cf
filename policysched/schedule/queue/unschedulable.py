"""`UnschedulablePods`: unschedulable and gated pods, indexed by the plugins whose queueing hints can retry them.

A gated pod is listed under its gate only. Other pods are listed under each plugin that rejected them, by the keys of
the plugin's `HintIndex` if the plugin has one. So a change is evaluated only for the pods that it may concern.

Source: pkg/scheduler/backend/queue/unschedulable_pods.go.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from policysched.framework import Change, HintIndex
from policysched.model.objects import Pod
from policysched.schedule.queue.queued_pod import QueuedPod

log = logging.getLogger(__name__)
MOST_KEYS: Final = 64
"""Maximum number of index keys of a pod for one plugin; beyond it, hints are called for the pod at every change."""
Pods = dict[str, QueuedPod]
"""Waiting pods by pod identity."""


@dataclass(slots=True)
class _Listed:
    """The waiting pods that one plugin rejected or gates, by the keys with which its hints find pods."""

    pods: Pods = field(default_factory=dict)
    by_key: dict[Hashable, Pods] = field(default_factory=dict)
    without_keys: Pods = field(default_factory=dict)
    """The pods without index keys; queueing hints are called for these pods at every change."""

    def add(self, queued: QueuedPod, keys: Collection[Hashable] | None) -> None:
        """Add a pod under its index keys; if they are None, hints are called for the pod at every change."""
        self.pods[queued.identity] = queued
        if keys is None:
            self.without_keys[queued.identity] = queued
        for key in keys or ():
            self.by_key.setdefault(key, {})[queued.identity] = queued

    def discard(self, identity: str, keys: Collection[Hashable] | None) -> None:
        del self.pods[identity]
        if keys is None:
            del self.without_keys[identity]
        for key in keys or ():
            pods = self.by_key[key]
            del pods[identity]
            if not pods:
                del self.by_key[key]


class _Listing(NamedTuple):
    """The plugins and index keys under which one waiting pod is stored."""

    profile: str
    keys: Mapping[str, Collection[Hashable] | None]
    """The index keys under which the pod is stored, by plugin."""
    gated: bool
    pod: Pod
    indexes: Mapping[str, HintIndex]

    def is_current(self, queued: QueuedPod, indexes: Mapping[str, HintIndex], plugins: frozenset[str]) -> bool:
        """Return whether the pod is still stored under its current plugins, version and indexes."""
        is_same = self.pod is queued.pod and self.indexes is indexes and self.profile == queued.profile
        return is_same and self.keys.keys() == plugins and self.gated == bool(queued.gated_by)


class UnschedulablePods:
    """All unschedulable and gated pods, by pod identity, and by profile and rejecting plugin."""

    __slots__ = ("_listed", "_listings", "_pods", "gated")

    def __init__(self) -> None:
        self._pods: Pods = {}
        self._listings: dict[str, _Listing] = {}
        self._listed: dict[tuple[str, str], _Listed] = {}
        self.gated = 0
        """Number of gated pods."""

    def add(self, queued: QueuedPod, indexes: Mapping[str, HintIndex]) -> None:
        """Add a waiting pod as the last one; store it again if its version or its rejecting plugins changed.

        Args:
            queued: The pod.
            indexes: The indexes of its profile's plugins, by plugin name.
        """
        plugins = frozenset((queued.gated_by,)) if queued.gated_by else queued.rejectors | queued.pending
        identity = queued.identity
        known = self._listings.get(identity)
        if known is not None and self._pods[identity] is queued and known.is_current(queued, indexes, plugins):
            for pods in (self._pods, *(self._listed[queued.profile, plugin].pods for plugin in plugins)):
                pods[identity] = pods.pop(identity)
            return
        self.discard(identity)
        keys = {plugin: _keys(queued, indexes.get(plugin)) for plugin in plugins}
        for plugin in plugins:
            self._listed.setdefault((queued.profile, plugin), _Listed()).add(queued, keys[plugin])
        self._pods[identity] = queued
        self._listings[identity] = _Listing(queued.profile, keys, bool(queued.gated_by), queued.pod, indexes)
        self.gated += bool(queued.gated_by)

    def discard(self, identity: str) -> None:
        """Remove a pod if it is unschedulable or gated."""
        if self._pods.pop(identity, None) is None:
            return
        listing = self._listings.pop(identity)
        self.gated -= listing.gated
        for plugin, keys in listing.keys.items():
            listed = self._listed[listing.profile, plugin]
            listed.discard(identity, keys)
            if not listed.pods:
                del self._listed[listing.profile, plugin]

    def held_by(self, profile: str, plugin: str) -> Mapping[str, QueuedPod]:
        """Return the pods that a plugin rejected or gates, by pod identity."""
        listed = self._listed.get((profile, plugin))
        return {} if listed is None else listed.pods

    def found_by(self, change: Change, profile: str, plugin: str, index: HintIndex | None) -> Mapping[str, QueuedPod]:
        """Return the pods, by identity, that a plugin rejected or gates and whose index keys include a key of a change.

        Args:
            change: The change.
            profile: The profile of the pods.
            plugin: The plugin's name.
            index: The index of the plugin's hints for such changes; None returns all its pods.

        Cost: O(keys of the change + pods found).
        """
        listed = self._listed.get((profile, plugin))
        if listed is None:
            return {}
        keys = None if index is None else _keys_of_change(change, index, listed.by_key)
        if keys is None:
            return listed.pods
        found: Pods = dict(listed.without_keys)
        for key in keys:
            found |= listed.by_key.get(key, {})
        return found

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)


def _keys(queued: QueuedPod, index: HintIndex | None) -> Collection[Hashable] | None:
    """Return a pod's keys in a plugin's index of waiting pods; None for no index, an error, or too many keys."""
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


def _keys_of_change(change: Change, index: HintIndex, listed: Mapping[Hashable, Pods]) -> Collection[Hashable] | None:
    """Return the index keys of the pods that a change may help; None if it may help any pod, or after an error."""
    try:
        return index.leads_to(change, listed)
    except Exception:
        log.exception(
            "cannot compute which pods a change of %s can help; evaluating the queueing hints of all pods",
            change.resource.value,
        )
        return None
