"""Looks up a pod's PersistentVolumeClaims: bound, waiting for the pod (WaitForFirstConsumer), or missing.

A missing or unbound claim rejects the pod, with the messages of kube-scheduler's listers.

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


def uses_volumes(pod: Pod, cluster: Cluster) -> bool:  # noqa: ARG001 - PerPod's signature
    """Return whether a pod has volumes of a type that scheduling reads."""
    return has_volumes(pod)


def claim_missing(name: str) -> str:
    """Return the message that a PersistentVolumeClaim is missing."""
    return f'persistentvolumeclaim "{name}" not found'


def volume_missing(name: str) -> str:
    """Return the message that a PersistentVolume is missing."""
    return f'persistentvolume "{name}" not found'


def class_missing(name: str) -> str:
    """Return the message that a StorageClass is missing."""
    return f'storageclass.storage.k8s.io "{name}" not found'


def stated_claims(pod: Pod) -> list[str]:
    """Return the names of the claims in a pod's volumes without repetition, except claims of ephemeral volumes."""
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return list(dict.fromkeys(source.claim_name for source in sources if source is not None))


def stored_claim(storage: Storage, pod: Pod, name: str) -> PersistentVolumeClaim | None:
    """Return a claim in the pod's namespace as the API server has it, without assumed changes."""
    return storage.claims.stored(f"{pod.metadata.namespace}/{name}")


def states_claim(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    """Return whether a change concerns a claim that the pod's volumes name."""
    claim = change.new
    if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.namespace != pod.metadata.namespace:
        return False
    return claim.metadata.name in stated_claims(pod)


def uses_claim(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    """Return whether a change concerns a claim that the pod's volumes name, or the claim of an ephemeral volume."""
    claim = change.new
    if not isinstance(claim, PersistentVolumeClaim) or claim.metadata.namespace != pod.metadata.namespace:
        return False
    return any(claim_name(pod, volume) == claim.metadata.name for volume in pod.spec.volumes)


IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class Claims:
    """The PersistentVolumeClaims of a pod, if all of them exist and are usable."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    """The bound claims, without repetition."""
    waiting: tuple[PersistentVolumeClaim, ...] = ()
    """The unbound claims with WaitForFirstConsumer; a claim that several volumes use is repeated."""


def claims_of(pod: Pod, storage: Storage) -> Claims | Status | None:
    """Return a pod's claims, or the rejection because of a missing or unusable claim.

    Returns:
        The claims; None if the pod has none; a status if a claim rejects the pod on every node.
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
