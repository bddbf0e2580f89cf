"""Selector index: files selectors under a label value that they demand, so that a pod finds those that may match it.

Knows selectors and labels, nothing of who asks. Of many selectors few are about one pod; each is filed under a
namespace and a label's value that it demands, so that a pod finds those that may mean it by its own namespace and
labels. An index key only narrows: whether the selector matches is still to be asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from policysched.model.selection.pod_affinity import PeerSelector
from policysched.model.selection.selectors import LabelMatcher

IndexKey = tuple[str | None, str | None, str | None]
"""A namespace, a label and its value; None stands for any."""
ANYTHING: IndexKey = (None, None, None)
MOST = 64
"""A selector that would be filed under more index keys than this is filed under less precise ones."""
MOST_PER_TERM = 4
"""So is an affinity term under more than this: there may be very many, and an index key takes more than it says."""


def index_keys_of_selector(
    pods: LabelMatcher, namespaces: Collection[str] | None, most: int | None = None
) -> list[IndexKey]:
    """Name where to file a selector: under namespaces with labels, under either alone, or under what stands for any.

    Args:
        pods: what labels must be.
        namespaces: the namespaces that are meant, None for all.
        most: under how many index keys at most, `MOST` where it is not given.
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
    """Name where to file what an affinity term means; a selector of namespaces may mean any."""
    named = peers.namespace_selector.selects_nothing
    return index_keys_of_selector(peers.pods, peers.namespaces if named else None, MOST_PER_TERM)


def narrowest(of: Iterable[list[IndexKey]]) -> list[IndexKey]:
    """Choose what leaves least open of the index keys of several selectors that a pod has to meet together."""
    return min(
        of,
        key=lambda index_keys: (sum(part is None for index_key in index_keys for part in index_key), len(index_keys)),
    )


def index_keys_of_pod(namespace: str, labels: Mapping[str, str]) -> list[IndexKey]:
    """Name where selectors are filed that may mean a pod."""
    pairs: list[tuple[str | None, str | None]] = [(None, None), *labels.items()]
    return [(inside, key, value) for inside in (namespace, None) for key, value in pairs]


def index_keys_met(namespace: str, labels: Mapping[str, str], filed: Collection[Any]) -> list[IndexKey]:
    """Find the index keys of a pod among those under which anything is filed; other keys are passed over.

    Cost: O(labels of the pod) or O(index keys filed), whichever is less.
    """
    if len(labels) < len(filed):
        return [index_key for index_key in index_keys_of_pod(namespace, labels) if index_key in filed]
    return [key for key in filed if type(key) is tuple and _is_met(key, namespace, labels)]


def _is_met(index_key: IndexKey, namespace: str, labels: Mapping[str, str]) -> bool:
    inside, key, value = index_key
    return inside in (None, namespace) and (key is None or labels.get(key) == value)


def demanded_labels(selector: LabelMatcher, most: int | None = None) -> list[tuple[str, str]] | None:
    """List the values of one label of which whatever a selector selects has one, as few as there are.

    Missing: None where no label need have a value that is listed, or where more are than `most`, else `MOST`.
    """
    narrowest = selector.narrowest
    if narrowest is None or len(narrowest.values) > (MOST if most is None else most):
        return None
    return [(narrowest.key, value) for value in narrowest.values]
