"""The pod that rules are asked about, with the values that they read of it.

A subject stands for a pod class: what siblings may differ in is in the class's key where a rule reads it. Its age is
that of the moment when the subject was made, because the key holds what rules make of it then.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any
from weakref import WeakValueDictionary

from policysched.language.ir.graph import ANY_KEY, Input
from policysched.model.needs import pod_images
from policysched.model.objects import Pod
from policysched.model.objects.meta import seconds_of
from policysched.rules.pod_inputs import Scalar, amount, cluster_value, pod_value, requested, whole_map
from policysched.state.ages import age
from policysched.state.cluster import Cluster

VOLATILE = frozenset((("cluster", "nodes"), ("cluster", "pods"), ("pod", "image_bytes")))
"""What is read of the cluster and not of the pod, though it is one value for all nodes."""


class Subject:
    """A pod's values, each found once; without a pod, for rules that read none of it."""

    __slots__ = ("__weakref__", "_age", "_amounts", "_cluster", "_known", "_pod", "found", "scalars")

    def __init__(self, pod: Pod | None, cluster: Cluster) -> None:
        self._pod = pod
        self._cluster = cluster
        self._age = _age(pod, cluster)
        self._amounts: dict[str, int] | None = None
        self._known: dict[Input, Scalar] = {}
        self.scalars: dict[Any, Any] = {}
        """What programs made of the pod and the time alone, by graph node; frames begin with it."""
        self.found: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        """The counters and aggregates of graph nodes, as long as somebody holds them."""

    @property
    def pod(self) -> Pod:
        """The pod.

        Raises:
            ValueError: there is none.
        """
        if self._pod is None:
            raise ValueError("a rule that reads no pod asked for one")
        return self._pod

    def value(self, item: Input) -> Scalar:
        """Give a `pod.` or `cluster.` input."""
        if (item.root, item.path[0]) in VOLATILE:
            return cluster_value(item, self._cluster) if item.root == "cluster" else self._find(item)
        known = self._known.get(item, self)
        if isinstance(known, Subject):
            known = self._known[item] = self._find(item)
        return known

    def key(self, inputs: Iterable[Input]) -> Hashable:
        """Give the pod's part of some inputs: subjects with equal keys are the same to who reads only them."""
        return tuple(self._part(item) for item in inputs if item.root == "pod" or item.path[0] == "cached_image_bytes")

    def _part(self, item: Input) -> Hashable:
        if item.path[0] in {"cached_image_bytes", "image_bytes"}:
            return pod_images(self.pod)
        if item.key != ANY_KEY:
            return self.value(item)
        if item.path[0] == "requests":
            return tuple(sorted(requested(self.pod).items()))
        return whole_map(self.pod, item, self._cluster)

    def _find(self, item: Input) -> Scalar:
        name = item.path[0]
        if name == "age":
            return self._age
        if name != "requests":
            return pod_value(self.pod, item, self._cluster)
        if self._amounts is None:
            self._amounts = requested(self.pod)
        return amount(self._amounts, item)


def _age(pod: Pod | None, cluster: Cluster) -> float:
    created = seconds_of(pod.metadata.creation_timestamp) if pod is not None else None
    return 0.0 if created is None else age(created, cluster.moment.seconds)
