"""Resource claim controllers: create claims from templates, and release devices that no pod uses.

A pod that names a template gets a claim of its own, named in its status. Pods that are deleted or finished are removed
from reservedFor; with the last one, allocation and finalizer are removed. The garbage collector deletes claims of
deleted pods. The controllers react to events only, without periodic resync.

Source: pkg/controller/resourceclaim/controller.go (syncPod, handleClaim, syncClaim), v1.36.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final

from policysched.apimachinery import Json
from policysched.apimachinery.errors import StatusError
from policysched.apimachinery.resources import builtin
from policysched.sandbox.controllers import Controller, Name, UidIndex
from policysched.sandbox.storage.actions import DeleteOptions, delete
from policysched.sandbox.storage.store import Backend, StoreEvent
from policysched.sandbox.storage.writes import WriteOptions, create, store_update

CLAIMS, TEMPLATES = builtin("resourceclaims.resource.k8s.io"), builtin("resourceclaimtemplates.resource.k8s.io")
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation with the name of the pod's resourceClaims entry for which a claim was created."""
_LONGEST: Final = 57
"""Largest length of the start of a claim's name; longer names of pods and entries are cut. Units: characters."""


class TemplateController(Controller):
    """Creates claims for pods that name templates."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._without_template: dict[Name, set[Name]] = {}

    def on_event(self, event: StoreEvent) -> None:
        """Enqueue pods that name a claim template and lack the claim."""
        if event.key == TEMPLATES.key and event.type == "ADDED":
            for name in self._without_template.pop(event.entry.key, ()):
                self.enqueue(name)
        elif event.key == "pods" and event.type != "DELETED" and _lacks_claims(event.entry.object):
            self.enqueue(event.entry.key)

    def reconcile(self, name: Name) -> None:
        """Create the missing claims of a pod and write their names into its status."""
        entry = self._store.get("pods", *name)
        if entry is None or entry.object["metadata"].get("deletionTimestamp"):
            return
        pod = entry.object
        told = list(pod["status"].get("resourceClaimStatuses") or ())
        for one in _without_claim(pod):
            made = self._make(pod, one)
            if made:
                told.append({"name": one["name"], "resourceClaimName": made})
        if told != (pod["status"].get("resourceClaimStatuses") or []):
            self._store.write("pods", pod | {"status": pod["status"] | {"resourceClaimStatuses": told}})

    def _make(self, pod: Json, stated: Json) -> str:
        """Create a claim from a template; return its name, or an empty text if the template does not exist."""
        metadata, namespace = pod["metadata"], pod["metadata"]["namespace"]
        at = (namespace, stated["resourceClaimTemplateName"])
        template = self._store.get(TEMPLATES.key, *at)
        if template is None:
            self._without_template.setdefault(at, set()).add((namespace, metadata["name"]))
            return ""
        spec = copy.deepcopy(template.object["spec"])
        given = spec.get("metadata") or {}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        body = {
            "metadata": {
                "generateName": _begins(metadata["name"], stated["name"]),
                "ownerReferences": [owner | {"controller": True}],
                "annotations": (given.get("annotations") or {}) | {POD_CLAIM: stated["name"]},
                "labels": given.get("labels") or {},
            },
            "spec": spec["spec"],
        }
        try:
            return str(create(self._backend, CLAIMS, namespace, body, WriteOptions()).key[1])
        except StatusError:
            return ""  # the namespace is being deleted


def _begins(pod: str, claim: str) -> str:
    """Return the start of the name of a pod's claim; pod name and entry name are cut in proportion if too long."""
    whole = f"{pod}-{claim}-"
    if len(whole) <= _LONGEST:
        return whole
    first = f"{pod[: len(pod) * _LONGEST // len(whole)]}-"
    return first + claim[: len(claim) * _LONGEST // len(whole)]


def _without_claim(pod: Json) -> list[Json]:
    """Return the resourceClaims entries of a pod that name a template and have no claim."""
    told = {one["name"] for one in pod["status"].get("resourceClaimStatuses") or ()}
    stated = pod["spec"].get("resourceClaims") or ()
    return [one for one in stated if one.get("resourceClaimTemplateName") and one["name"] not in told]


def _lacks_claims(pod: Json) -> bool:
    return bool(pod["spec"].get("resourceClaims")) and not is_done(pod) and bool(_without_claim(pod))


def is_done(pod: Json) -> bool:
    """Return whether a pod needs no devices any more: it has ended, or is being deleted without a node."""
    ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    never = bool(pod["metadata"].get("deletionTimestamp")) and not pod["spec"].get("nodeName")
    return ended or never


class ReservationController(Controller):
    """Removes deleted and finished pods from claims, and deallocates unused claims."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._claims: UidIndex[Name] = UidIndex()
        """Names of the claims that are reserved for a pod."""

    def on_event(self, event: StoreEvent) -> None:
        """Enqueue changed claims, and claims of pods that ended."""
        obj = event.entry.object
        if event.key == CLAIMS.key:
            before = () if event.before is None else _uids_of(event.before.object)
            self._claims.update(event.entry.key, before, () if event.type == "DELETED" else _uids_of(obj))
            if event.type != "DELETED":
                self.enqueue(event.entry.key)
        elif event.key == "pods" and (event.type == "DELETED" or is_done(obj)):
            for name in self._claims.of(obj["metadata"]["uid"]):
                self.enqueue(name)

    def reconcile(self, name: Name) -> None:
        """Remove pods that no longer use a claim from its reservedFor."""
        entry = self._store.get(CLAIMS.key, *name)
        if entry is None:
            return
        claim = entry.object
        users = (claim.get("status") or {}).get("reservedFor") or []
        pods = _users(claim)
        left = [one for one in users if one not in pods or self._is_used_by(claim, one)]
        ends = bool(claim["metadata"].get("deletionTimestamp"))
        if len(left) < len(users) or (ends and not left):
            self._release(claim, left)
        if not left:
            self._drop_unused(name)

    def _release(self, claim: Json, left: list[Json]) -> None:
        """Set the remaining users of a claim; deallocate the claim if it has no users left."""
        status = dict(claim.get("status") or {}) | {"reservedFor": left}
        if left:
            self._store.write(CLAIMS.key, claim | {"status": status})
            return
        for field in ("reservedFor", "allocation", "devices"):
            status.pop(field, None)
        metadata = dict(claim["metadata"])
        metadata["finalizers"] = [one for one in metadata.get("finalizers") or () if one != FINALIZER]
        if not metadata["finalizers"]:
            del metadata["finalizers"]
        store_update(self._backend, CLAIMS, claim | {"metadata": metadata, "status": status})

    def _drop_unused(self, name: Name) -> None:
        """Delete an unused claim that was created for a pod, if the pod has finished or was replaced."""
        entry = self._store.get(CLAIMS.key, *name)
        if entry is None or entry.object["metadata"].get("deletionTimestamp"):
            return
        references = entry.object["metadata"].get("ownerReferences") or ()
        owner = next((one for one in references if one.get("controller") and one["kind"] == "Pod"), None)
        pod = None if owner is None else self._store.get("pods", name[0], owner["name"])
        if owner is None or pod is None:
            return
        if pod.object["metadata"]["uid"] != owner["uid"] or is_done(pod.object):
            delete(self._backend, CLAIMS, entry, DeleteOptions())

    def _is_used_by(self, claim: Json, user: Json) -> bool:
        entry = self._store.get("pods", claim["metadata"]["namespace"], user["name"])
        return entry is not None and entry.object["metadata"]["uid"] == user["uid"] and not is_done(entry.object)


def _users(claim: Json) -> list[Json]:
    """Return the pods that a claim is reserved for."""
    users = (claim.get("status") or {}).get("reservedFor") or ()
    return [one for one in users if one.get("resource") == "pods" and not one.get("apiGroup")]


def _uids_of(claim: Json) -> list[str]:
    """Return the UIDs of the pods that a claim is reserved for."""
    return [one["uid"] for one in _users(claim)]
