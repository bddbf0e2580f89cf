"""Keys with which label selectors are indexed: a namespace, and a label value that the selector requires.

A pod finds the selectors that may match it by its own namespace and labels. A found selector must still be evaluated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from policysched.model.selection.pod_affinity import PeerSelector
from policysched.model.selection.selectors import LabelMatcher

IndexKey = tuple[str | None, str | None, str | None]
"""A namespace, a label key and a label value; None for a part that may have any value."""
ANYTHING: IndexKey = (None, None, None)
MOST = 64
"""Maximum number of index keys of one selector; a selector that needs more gets less precise keys."""
MOST_PER_TERM = 4
"""Maximum number of index keys of one affinity term, lower than `MOST` because there are many terms."""


def index_keys_of_selector(
    pods: LabelMatcher, namespaces: Collection[str] | None, most: int | None = None
) -> list[IndexKey]:
    """Return the index keys of a selector: namespaces, label values or both; `ANYTHING` if it requires neither.

    Args:
        pods: The label selector.
        namespaces: The namespaces in which it selects; None for all.
        most: Maximum number of index keys; `MOST` by default.
    """
    if pods.selects_nothing:
        return []
    most = MOST if most is None else most
    labels: list[tuple[str, str]] | list[tuple[None, None]] = demanded_labels(pods, most) or [(None, None)]
    inside: Collection[str | None] = (None,) if namespaces is None else namespaces
    if len(inside) * len(labels) > most:
        inside = (None,)
    return [(namespace, key, value) for namespace in inside for key, value in labels]


def index_keys_of_peers(peers: PeerSelector) -> list[IndexKey]:
    """Return the index keys of an affinity term; a term with a namespaceSelector gets keys for any namespace."""
    named = peers.namespace_selector.selects_nothing
    return index_keys_of_selector(peers.pods, peers.namespaces if named else None, MOST_PER_TERM)


def narrowest(of: Iterable[list[IndexKey]]) -> list[IndexKey]:
    """Return the most precise list of index keys among several, for selectors that must all match one pod.

    Only the first `MOST` lists are compared.
    """
    return min(
        islice(of, MOST),
        key=lambda index_keys: (sum(part is None for index_key in index_keys for part in index_key), len(index_keys)),
    )


def index_keys_of_pod(namespace: str, labels: Mapping[str, str]) -> list[IndexKey]:
    """Return all keys under which a selector can be indexed that matches a pod with this namespace and labels."""
    pairs: list[tuple[str | None, str | None]] = [(None, None), *labels.items()]
    return [(inside, key, value) for inside in (namespace, None) for key, value in pairs]


def index_keys_met(namespace: str, labels: Mapping[str, str], filed: Collection[Any]) -> list[IndexKey]:
    """Return the keys in `filed` under which a selector can be indexed that matches a pod.

    Cost: O(labels of the pod) or O(index keys of the index), whichever is less.
    """
    if len(labels) < len(filed):
        return [index_key for index_key in index_keys_of_pod(namespace, labels) if index_key in filed]
    return [key for key in filed if type(key) is tuple and _is_met(key, namespace, labels)]


def _is_met(index_key: IndexKey, namespace: str, labels: Mapping[str, str]) -> bool:
    inside, key, value = index_key
    return inside in (None, namespace) and (key is None or labels.get(key) == value)


def demanded_labels(selector: LabelMatcher, most: int | None = None) -> list[tuple[str, str]] | None:
    """Return label values, as (key, value), of which a pod must have one so that a selector can match it.

    Missing: None if the selector requires no listed value, or more than `most` (`MOST` by default).
    """
    narrowest = selector.narrowest
    if narrowest is None or len(narrowest.values) > (MOST if most is None else most):
        return None
    return [(narrowest.key, value) for value in narrowest.values]
