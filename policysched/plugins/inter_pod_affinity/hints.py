"""Queueing hints of InterPodAffinity: which changes can help a pod that the plugin rejected.

Unlike kube-scheduler's hints, they resolve namespace selectors, evaluate each anti-affinity term separately, and retry
a pod that may become the first of its group. kube-scheduler retries such pods only after minutes.

Source: plugins/interpodaffinity/plugin.go (isSchedulableAfter…), v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from policysched.framework import Change, Cluster, HintIndex
from policysched.model.objects import Namespace, Pod
from policysched.model.selection.pod_affinity import AffinityTerm, PeerSelector, TermKind, pod_terms
from policysched.plugins.hint_parts import has_place, index_keys_of_change, nodes_of, pods_of, updates_itself
from policysched.state.placed.selector_index import demanded_labels, index_keys_of_peers, narrowest


class _ItsNamespace(NamedTuple):
    """Index key: a waiting pod's namespace, to find the pod by other pods' anti-affinity terms for any labels."""

    namespace: str


class _ItsLabel(NamedTuple):
    """Index key: a label of a waiting pod, to find the pod by other pods' anti-affinity terms for this label."""

    key: str
    value: str


def pod_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether a changed pod now matches the waiting pod's affinity or no longer violates anti-affinity."""
    old, new = pods_of(change)
    if old is not None and updates_itself(pod, change):
        return True
    if any(one is not None and not has_place(one) for one in (old, new)):
        return False
    if not _concerns(old or new, pod):
        return False
    return _starts_to_match(pod, old, new, cluster) or (
        old is not None and _stops_rejecting(pod, old, new, cluster, change.row)
    )


def node_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether a changed node entered a topology domain of affinity or left a domain of anti-affinity."""
    old, new = nodes_of(change)
    if new is None:
        return False
    terms = pod_terms(pod)
    labels = new.metadata.labels
    before = None if old is None else old.metadata.labels
    enters = any(_enters(term.topology_key, before, labels) for term in terms.affinity)
    left = {term.topology_key for term in (*terms.anti_affinity, *_repelling(pod, cluster))}
    return enters or any(_leaves(key, before, labels) for key in left)


def namespace_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether a namespace's changed labels may change which pods match terms of, or about, the waiting pod."""
    terms, old, new = pod_terms(pod), change.old, change.new
    own = [term.peers for term in (*terms.affinity, *terms.anti_affinity) if term.peers.reads_namespaces]
    if not isinstance(old, Namespace) or not isinstance(new, Namespace):
        return bool(own) or cluster.existing_terms.read_namespaces
    selectors = (peers.namespace_selector for peers in own)
    if any(one.matches(old.metadata.labels) != one.matches(new.metadata.labels) for one in selectors):
        return True
    return cluster.existing_terms.read_namespaces and new.metadata.name == pod.metadata.namespace


def _concerns(changed: Pod | None, waiting: Pod) -> bool:
    """Return whether, by namespaces alone, a term of the changed pod may match the waiting pod or vice versa."""
    if changed is None or changed.metadata.namespace == waiting.metadata.namespace or _keeps_away(changed):
        return True
    affinity = waiting.spec.affinity
    sorts = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    terms = (term for sort in sorts if sort is not None for term in sort.required)
    return any(term.namespaces or term.namespace_selector is not None for term in terms)


def _keeps_away(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and affinity.pod_anti_affinity is not None


def _repelling(pod: Pod, cluster: Cluster) -> list[AffinityTerm]:
    """Return the anti-affinity terms of placed pods that match the waiting pod."""
    labels = cluster.namespaces.get(pod.metadata.namespace, {})
    return [one.term for _, one in cluster.existing_terms.about(pod, labels) if one.sort is TermKind.REPELS]


def _starts_to_match(pod: Pod, old: Pod | None, new: Pod | None, cluster: Cluster) -> bool:
    """Return whether a changed pod matches the waiting pod's affinity now but did not match before."""
    terms = pod_terms(pod).affinity
    return new is not None and _all_match(terms, new, cluster) and not (old and _all_match(terms, old, cluster))


def _stops_rejecting(pod: Pod, old: Pod, new: Pod | None, cluster: Cluster, row: int) -> bool:
    """Return whether anti-affinity between a changed or deleted pod and the waiting pod no longer rejects any node.

    Args:
        pod: The waiting pod.
        old: The other pod before the change.
        new: The other pod after the change; None if it is deleted.
        cluster: The cluster after the change.
        row: The row of the other pod.
    """
    terms = pod_terms(pod)
    ended = [
        term
        for term in terms.anti_affinity
        if _matches_loosely(term, old, cluster) and not (new and _matches_loosely(term, new, cluster))
    ]
    if ended and not _others_keep_out(terms.anti_affinity, ended, cluster, row):
        return True
    if _all_match(terms.affinity, old, cluster) and not (new and _all_match(terms.affinity, new, cluster)):
        return _all_match(terms.affinity, pod, cluster)
    return new is None and any(_matches_loosely(term, pod, cluster) for term in pod_terms(old).anti_affinity)


def _others_keep_out(terms: Iterable[AffinityTerm], ended: Iterable[AffinityTerm], cluster: Cluster, row: int) -> bool:
    """Return whether remaining pods on a node still violate the waiting pod's anti-affinity after another pod changed.

    This is known only if the row is alone in the domains of the ended terms.
    """
    if row < 0 or not all(_is_alone(cluster, term.topology_key, row) for term in ended):
        return False
    here = [term.peers for term in terms if cluster.nodes.labels(term.topology_key)[row] >= 0]
    return any(_matches(peers, placed.pod, cluster) for placed in cluster.pods.on_row(row) for peers in here)


def _is_alone(cluster: Cluster, key: str, row: int) -> bool:
    """Return whether a node is the only node with its value of a label."""
    nodes = cluster.nodes
    codes = nodes.labels(key)[: nodes.size]
    return bool(codes[row] >= 0 and np.count_nonzero(codes == codes[row]) == 1)


def _all_match(terms: Iterable[AffinityTerm], pod: Pod, cluster: Cluster) -> bool:
    met = [_matches_loosely(term, pod, cluster) for term in terms]
    return bool(met) and all(met)


def _matches_loosely(term: AffinityTerm, pod: Pod, cluster: Cluster) -> bool:
    """Return whether a term matches a pod, if the pod's namespace has its current labels or no labels."""
    return term.peers.matches(pod) or _matches(term.peers, pod, cluster)


def _matches(peers: PeerSelector, pod: Pod, cluster: Cluster) -> bool:
    """Return whether a term matches a pod, given the current labels of the pod's namespace."""
    return peers.matches(pod, cluster.namespaces.get(pod.metadata.namespace, {}))


def _enters(key: str, before: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    """Return whether a node is new with a topology label or got another value of the label."""
    return key in labels and (before is None or before.get(key) != labels[key])


def _leaves(key: str, before: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    """Return whether a node is new, or lost or changed its value of a topology label."""
    return before is None or (key in before and labels.get(key) != before[key])


def _filed_under(pod: Pod) -> Iterator[Hashable]:
    """Yield a waiting pod's index keys, to find the pod by the pods that its terms match and by other pods' terms."""
    terms, metadata = pod_terms(pod), pod.metadata
    yield _ItsNamespace(metadata.namespace)
    yield from map(_ItsLabel._make, metadata.labels.items())
    if terms.affinity:  # a pod has to match all of these terms
        yield from narrowest(index_keys_of_peers(term.peers) for term in terms.affinity)
    for peers in {term.peers: None for term in terms.anti_affinity}:
        yield from index_keys_of_peers(peers)


def _leads_to(change: Change, filed: Collection[Hashable]) -> Collection[Hashable] | None:
    """Return the index keys of the waiting pods that a changed pod may help; None if it may help every waiting pod."""
    old, new = pods_of(change)
    keys = index_keys_of_change(change, filed)
    if old is None or new is not None:
        return keys
    for peers in {term.peers: None for term in pod_terms(old).anti_affinity}:
        if peers.pods.selects_nothing:
            continue
        labels = demanded_labels(peers.pods)
        if labels:
            keys.update(map(_ItsLabel._make, labels))
        elif peers.namespace_selector.selects_nothing:
            keys.update(map(_ItsNamespace, peers.namespaces))
        else:
            return None
    return keys


INDEX: Final = HintIndex(_filed_under, _leads_to)
"""Index of the waiting pods for the queueing hint for placed pods, by the terms and labels that the hint compares."""
