"""The guards for pod affinity, spreading and volumes.

They know which fields of a pod need these plugins. What kube-scheduler would not look at is let through: an inline
CSI volume counts nowhere, and a claim is VolumeBinding's first of all, so the guards beside it take only the disks
that are theirs alone.

Source: plugins/interpodaffinity, podtopologyspread, volumebinding, volumerestrictions, nodevolumelimits, volumezone
and csi-translation-lib (IsInlineMigratable), v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from policysched.framework import Action, Change, Cluster, Hint, Resource
from policysched.model.objects import Pod, PodAffinityTerm
from policysched.model.selectors import SelectorError, compile_selector
from policysched.plugins.guards import Guard
from policysched.plugins.hints import pods_of, updates_itself

POD_AFFINITY = "policysched does not support pod affinity and anti-affinity yet"
SPREADING = "policysched does not support topologySpreadConstraints yet"
CLAIMS = "policysched does not support persistent volume claims and ephemeral volumes yet"
DISKS = "policysched does not support disks named in the pod itself yet"


def inter_pod_affinity() -> Guard:
    """Guard pods that have pod affinity, or that a placed pod's required anti-affinity selects."""
    hints = (
        Hint(Resource.ASSIGNED_POD, Action.DELETE, _deletion_helps),
        Hint(Resource.PENDING_POD, Action.UPDATE_POD_LABEL, _own_update_helps),
        Hint(Resource.NAMESPACE, Action.ALL),
    )
    return Guard("InterPodAffinity", _affinity_missing, hints, _surroundings)


def pod_topology_spread() -> Guard:
    """Guard pods with spread constraints of their own."""
    return Guard("PodTopologySpread", lambda pod, _: SPREADING if pod.spec.topology_spread_constraints else "")


def volume_binding() -> Guard:
    """Guard pods with persistent volume claims, of their own or made for them."""
    return Guard("VolumeBinding", lambda pod, _: _claims(pod), by_pod=True)


def volume_zone() -> Guard:
    """Guard the same pods where VolumeBinding is disabled."""
    return Guard("VolumeZone", lambda pod, _: _claims(pod), by_pod=True)


def volume_restrictions() -> Guard:
    """Guard pods with inline disks that another pod must not use at the same time."""
    return Guard(
        "VolumeRestrictions",
        lambda pod, _: _disks(pod, ("gce_persistent_disk", "aws_elastic_block_store", "iscsi", "rbd")),
        by_pod=True,
    )


def node_volume_limits() -> Guard:
    """Guard pods with the other inline disks that count against a driver's limit on its node."""
    return Guard(
        "NodeVolumeLimits",
        lambda pod, _: _disks(pod, ("azure_disk", "azure_file", "cinder", "vsphere_volume", "portworx_volume")),
        by_pod=True,
    )


def _claims(pod: Pod) -> str:
    claimed = any(one.persistent_volume_claim or one.ephemeral for one in pod.spec.volumes)
    return CLAIMS if claimed else ""


def _disks(pod: Pod, sources: Iterable[str]) -> str:
    for volume in pod.spec.volumes:
        if any(getattr(volume, source) is not None for source in sources):
            return f"{DISKS}: volume {volume.name}"
    return ""


def _surroundings(cluster: Cluster) -> Hashable:
    return cluster.surroundings


def _affinity_missing(pod: Pod, cluster: Cluster) -> str:
    if _has_pod_affinity(pod):
        return POD_AFFINITY
    selecting = sorted(one.pod.key for one in cluster.anti_affine.values() if _repels(one.pod, pod, cluster))
    return f"{POD_AFFINITY}: a placed pod's anti-affinity ({selecting[0]}) selects this pod" if selecting else ""


def _has_pod_affinity(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    parts = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return any(part is not None and (part.required or part.preferred) for part in parts)


def _anti_affinity(pod: Pod) -> list[PodAffinityTerm]:
    affinity = pod.spec.affinity
    return affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else []


def _repels(placed: Pod, pod: Pod, cluster: Cluster) -> bool:
    return any(_selects(term, placed, pod, cluster) for term in _anti_affinity(placed))


def _selects(term: PodAffinityTerm, placed: Pod, pod: Pod, cluster: Cluster) -> bool:
    """Tell whether a placed pod's term is about the pod; a term that is not valid is about none.

    Source: kube-scheduler/framework/types.go (AffinityTerm.Matches, getNamespacesFromPodAffinityTerm).
    """
    namespace = pod.metadata.namespace
    own = not term.namespaces and term.namespace_selector is None and namespace == placed.metadata.namespace
    try:
        named = compile_selector(term.namespace_selector).matches(cluster.namespaces.get(namespace, {}))
        selected = compile_selector(term.label_selector).matches(pod.metadata.labels)
    except SelectorError:
        return False
    return selected and (own or named or namespace in term.namespaces)


def _deletion_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:
    gone = pods_of(change)[0]
    return gone is not None and not _has_pod_affinity(pod) and _repels(gone, pod, cluster)


def _own_update_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    return updates_itself(pod, change) and not _has_pod_affinity(pod)
