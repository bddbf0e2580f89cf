"""`ClassCache`: filter and score results that equal pods share, cached up to a limit in bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from operator import attrgetter
from weakref import ref

from cachetools import LRUCache

from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.class_results import ClassResults
from policysched.schedule.cycle.pod_classes import class_key
from policysched.schedule.cycle.results.carried_over import EarlierResults
from policysched.schedule.timing import PREPARED, CycleTimes
from policysched.state.cluster import Cluster

CACHE_BYTES = 512 * 1024 * 1024
"""Maximum size of the cached results in a cluster of up to CACHE_NODES nodes. Units: bytes."""
CACHE_NODES = 1 << 15
"""Number of nodes above which the limit CACHE_BYTES grows with the number of nodes."""
MOST_CACHES = 4
"""Largest factor by which the limit CACHE_BYTES grows."""
LARGEST = 4
"""Results that need more than 1/LARGEST of the cache limit are not cached."""
BYTES_PER_KEY_BYTE = 20
"""Estimated memory of a cached pod and of data compiled from the pod, per byte of its cache key. Units: bytes."""
FORGOTTEN = 20_000
"""Number of dropped counts (one per counter and kind of placed pod) at which `relieve` stops dropping results."""
GIVEN_UP = 64
"""Maximum number of cached entries, each with the results of equal pods, that one call of `relieve` drops."""
RECENT_PROFILES = 5
"""Number of profiles, the newest ones, whose cached results stay available for reuse."""


class ClassCache:
    """The cached filter and score results, one entry for all pods that are equal for scheduling (a pod class).

    Args:
        cluster: The cluster.
        profile: The plugins and their weights.
    """

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self.cluster, self.profile = cluster, profile
        self._nodes = CACHE_NODES
        """Number of nodes from which the cache limit is computed."""
        self.forget()

    def forget(self) -> None:
        """Drop all cached results."""
        self._nodes = nodes_allowed_for(self.cluster.nodes.count, self._nodes)
        self._capacity = self.cluster.nodes.columns.capacity
        limit = CACHE_BYTES * self._nodes // CACHE_NODES
        self.cached: LRUCache[Hashable, ClassResults] = LRUCache(limit, getsizeof=attrgetter("nbytes"))
        self._recent = deque([ref(self.profile)], maxlen=RECENT_PROFILES)
        """The profiles whose results stay cached, the newest last, as weak references."""

    def use(self, profile: Profile) -> None:
        """Switch to another profile; cached results are reused under it as far as they are still valid."""
        self.profile = profile
        self._recent.append(ref(profile))
        recent = {id(one()) for one in self._recent}
        for key in [key for key, one in self.cached.items() if id(one.profile) not in recent]:
            del self.cached[key]

    def key(self, pod: Pod) -> Hashable:
        """Return a key that all pods share which are equal for scheduling under the current profile."""
        extra = self.profile.extra_key
        key = class_key(pod, None if extra is None else extra(pod, self.cluster))
        shared = self.profile.shared_keys(pod, self.cluster)
        return (key, shared) if shared else key

    def results(self, pod: Pod, key: Hashable = None, times: CycleTimes | None = None) -> ClassResults:
        """Return the up-to-date filter and score results for a pod, shared by all pods that are equal for scheduling.

        Args:
            pod: The pod.
            key: The key of its class, if known.
            times: Measures the plugins.
        """
        cluster = self.cluster
        cluster.strings.tidy()
        if self._capacity != cluster.nodes.columns.capacity:
            self.forget()
        if cluster.counters.crowded:
            self.relieve()
        if key is None or pod.spec.resource_claims:  # the shared part of the key depends on the state of the claims
            key = self.key(pod)
        stamps = self._stamps(self.profile)
        found = self.cached.get(key)
        if found is None or not found.is_current(self.profile, stamps):
            earlier = None if found is None else self._earlier_results(self.cached.pop(key))
            found = ClassResults(cluster, self.profile, pod, stamps, times, earlier)
            self._keep(key, found)
        else:
            if times is not None:
                times.lap(PREPARED)
            self._refresh(key, found)
        return found

    @property
    def nbytes(self) -> int:
        """The memory of all cached results at their last measurement. Units: bytes."""
        return int(self.cached.currsize)

    def relieve(self) -> None:
        """Drop the least recently used results, because the pod counters that they use slow down placements."""
        counters = self.cluster.counters
        counters.crowded, before = False, counters.forgotten
        for _ in range(min(GIVEN_UP, len(self.cached))):
            self.cached.popitem()
            if counters.forgotten - before >= FORGOTTEN:
                break

    def _earlier_results(self, found: ClassResults) -> EarlierResults | None:
        """Return the results of equal pods under an earlier profile; None if the current profile cannot reuse them."""
        earlier = found.profile
        if earlier is self.profile or earlier.extra_key != self.profile.extra_key:
            return None  # with another extra key, an equal key can stand for other pods
        return found.handed_over(self._stamps(earlier))

    def _stamps(self, profile: Profile) -> Hashable:
        return profile.stamps(self.cluster), self.cluster.nodes.columns.capacity

    def _keep(self, key: Hashable, results: ClassResults) -> None:
        """Cache the results that equal pods share, unless they need more than 1/LARGEST of the cache."""
        if self._nodes != nodes_allowed_for(self.cluster.nodes.count, self._nodes):
            self.forget()
        results.measure()
        results.nbytes += BYTES_PER_KEY_BYTE * _length(key)
        self.cached.pop(key, None)
        if LARGEST * results.nbytes <= self.cached.maxsize:
            self.cached[key] = results

    def _refresh(self, key: Hashable, results: ClassResults) -> None:
        try:
            results.refresh()
        except Exception:
            # some of the results are not current, so the next pod of the class must not use them
            del self.cached[key]
            raise
        if results.may_have_grown:
            self._keep(key, results)


def nodes_allowed_for(nodes: int, before: int) -> int:
    """Return the number of nodes from which the cache limit is computed: a power of two, so that it rarely changes.

    Args:
        nodes: The number of nodes.
        before: The previous result; it is kept until the nodes exceed it or are at most a quarter of it.
    """
    if nodes <= before < 4 * nodes:
        return before
    return max(CACHE_NODES, min(1 << max(nodes - 1, 0).bit_length(), MOST_CACHES * CACHE_NODES))


def _length(key: Hashable) -> int:
    """Return the length of the part of a cache key that describes the pod, not policies or plugins. Units: bytes."""
    while isinstance(key, tuple):
        key = key[0]
    return len(key) if isinstance(key, bytes) else 0
