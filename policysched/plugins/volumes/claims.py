"""A pod's claims: looked up, sorted into bound, delayed and immediate ones, and named when one is missing.

Claims are bound, waiting for the pod, or such as the pod cannot wait for. It knows the state's storage, no plugin. The
texts are those of kube-scheduler's listers.

Source: client-go listers (errors.NewNotFound); plugins/volumebinding/binder.go (GetPodVolumeClaims), volumezone,
volumerestrictions, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policysched.framework import Change, Cluster, Code, Status, unresolvable
from policysched.model.objects import PersistentVolumeClaim, Pod, Volume
from policysched.model.objects.storage import WAIT_FOR_FIRST_CONSUMER, claim_name, class_of, is_fully_bound, is_made_for
from policysched.state.volumes.storage import Storage, has_volumes


def uses_volumes(pod: Pod, cluster: Cluster) -> bool:  # noqa: ARG001 - every per-pod plugin is asked so
    """Return whether a pod has volumes of a kind that scheduling looks at."""
    return has_volumes(pod)


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
    """Name the claims that a pod states, each once, in the order of its volumes; those made for it are left out."""
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return list(dict.fromkeys(source.claim_name for source in sources if source is not None))


def stored_claim(storage: Storage, pod: Pod, name: str) -> PersistentVolumeClaim | None:
    """Find a claim of the pod's namespace as the API server has it."""
    return storage.claims.stored(f"{pod.metadata.namespace}/{name}")


def states_claim(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    """Return whether a change is about a claim that the pod states."""
    claim = change.new
    if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.namespace != pod.metadata.namespace:
        return False
    return claim.metadata.name in stated_claims(pod)


def uses_claim(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    """Return whether a change is about a claim that the pod uses, stated or made for it."""
    claim = change.new
    if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.namespace != pod.metadata.namespace:
        return False
    return any(claim_name(pod, volume) == claim.metadata.name for volume in pod.spec.volumes)


IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class Claims:
    """A pod's claims that can be looked at node by node."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    """Each once."""
    waiting: tuple[PersistentVolumeClaim, ...] = ()
    """Not bound; their class waits for the pod. One that several volumes name is there for each of them."""


def claims_of(pod: Pod, storage: Storage) -> Claims | Status | None:
    """Sort a pod's claims.

    Returns:
        The claims; None where the pod has none; a status where one of them keeps the pod from every node.
    """
    volumes = ((volume, claim_name(pod, volume)) for volume in pod.spec.volumes)
    named = [(volume, name) for volume, name in volumes if name is not None]
    if not named:
        return None
    for (name, _), volume in {(name, volume.ephemeral is None): volume for volume, name in named}.items():
        problem = _problem(pod, volume, name, storage)
        if problem is not None:
            return problem
    return _sorted(pod.metadata.namespace, [name for _, name in named], storage)


def _sorted(namespace: str, names: Sequence[str], storage: Storage) -> Claims | Status:
    bound: list[PersistentVolumeClaim] = []
    waiting: dict[str, PersistentVolumeClaim] = {}
    immediate = False
    for name in dict.fromkeys(names):
        claim = storage.claims.get(f"{namespace}/{name}")
        if claim is not None and is_fully_bound(claim):
            bound.append(claim)
        elif claim is not None:
            waits = _waits(claim, storage)
            if isinstance(waits, Status):
                return waits
            if waits and not claim.spec.volume_name:
                waiting[name] = claim
            else:
                immediate = True
    if immediate:
        return unresolvable(IMMEDIATE)
    return Claims(tuple(bound), tuple(waiting[name] for name in names if name in waiting))


def _problem(pod: Pod, volume: Volume, name: str, storage: Storage) -> Status | None:
    claim = stored_claim(storage, pod, name)
    if claim is None:
        if volume.ephemeral is not None:
            return unresolvable(f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"')
        return unresolvable(claim_missing(name))
    if claim.status.phase == "Lost":
        return unresolvable(
            f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        )
    if claim.metadata.deletion_timestamp is not None:
        return unresolvable(f'persistentvolumeclaim "{name}" is being deleted')
    if volume.ephemeral is not None and not is_made_for(claim, pod):
        return unresolvable(f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)")
    return None


def _waits(claim: PersistentVolumeClaim, storage: Storage) -> bool | Status:
    name = class_of(claim)
    of_class = storage.classes.get(name) if name else None
    if of_class is None:
        return False
    if of_class.volume_binding_mode is None:
        return Status(Code.ERROR, (f'VolumeBindingMode not set for StorageClass "{name}"',))
    return of_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
