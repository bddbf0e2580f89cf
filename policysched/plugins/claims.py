"""What the volume plugins have in common: finding a pod's claims and volumes, and saying that one is not there.

It knows the state's storage, no plugin. The texts are those of kube-scheduler's listers.

Source: client-go listers (errors.NewNotFound); plugins/volumezone, volumerestrictions, volumebinding, v1.36.
"""

from __future__ import annotations

from policysched.framework import Change, Cluster
from policysched.model.objects import PersistentVolumeClaim, Pod
from policysched.model.storage import claim_name
from policysched.state.storage import Storage


def claim_missing(name: str) -> str:
    """Say that a claim is not there."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_missing(name: str) -> str:
    """Say that a volume is not there."""
    return f'persistentvolume "{name}" not found'


def class_missing(name: str) -> str:
    """Say that a storage class is not there."""
    return f'storageclass.storage.k8s.io "{name}" not found'


def stated_claims(pod: Pod) -> list[str]:
    """Name the claims that a pod states, in the order of its volumes; those made for it are left out."""
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return [source.claim_name for source in sources if source is not None]


def stored_claim(storage: Storage, pod: Pod, name: str) -> PersistentVolumeClaim | None:
    """Find a claim of the pod's namespace as the API server has it."""
    return storage.claims.stored(f"{pod.metadata.namespace}/{name}")


def states_claim(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    """Tell whether a change is about a claim that the pod states."""
    claim = change.new
    if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.namespace != pod.metadata.namespace:
        return False
    return claim.metadata.name in stated_claims(pod)


def uses_claim(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    """Tell whether a change is about a claim that the pod uses, stated or made for it."""
    claim = change.new
    if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.namespace != pod.metadata.namespace:
        return False
    return any(claim_name(pod, volume) == claim.metadata.name for volume in pod.spec.volumes)
