"""Resource claim controllers: create claims from templates, and release devices that no pod uses.

A pod or pod group that names a template gets a claim of its own, named in its status. A pod uses the claim of its pod
group if both state it alike. Pods that are deleted or finished, and deleted pod groups, are removed from reservedFor;
with the last one, allocation and finalizer are removed. The garbage collector deletes claims of deleted owners. The
controllers react to events only, without periodic resync.

Source: pkg/controller/resourceclaim/controller.go (syncPod, syncPodGroup, handleClaim, syncClaim), v1.37.
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

PODS, POD_GROUPS = "pods", "podgroups.scheduling.k8s.io"
CLAIMS, TEMPLATES = builtin("resourceclaims.resource.k8s.io"), builtin("resourceclaimtemplates.resource.k8s.io")
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation with the name of the resourceClaims entry for which a claim was created."""
_LONGEST: Final = 57
"""Largest length of the start of a claim's name; longer names of owners and entries are cut. Units: characters."""


class GroupTemplateController(Controller):
    """Creates claims for pod groups that name templates."""

    owners = POD_GROUPS
    """The kind of the owners of the claims."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._without: dict[tuple[str, Name], set[Name]] = {}
        """The names of the owners that wait for a template or pod group, by kind and name."""

    def on_event(self, event: StoreEvent) -> None:
        """Enqueue owners that name a claim template and lack the claim."""
        if event.type != "DELETED":
            for name in self._without.pop((event.key, event.entry.key), ()):
                self.enqueue(name)
        if event.key == self.owners and event.type != "DELETED" and _lacks_claims(event.entry.object):
            self.enqueue(event.entry.key)

    def reconcile(self, name: Name) -> None:
        """Create the missing claims of an owner and write their names into its status."""
        entry = self._store.get(self.owners, *name)
        if entry is None or entry.object["metadata"].get("deletionTimestamp"):
            return
        owner = entry.object
        status = owner.get("status") or {}
        told = list(status.get("resourceClaimStatuses") or ())
        for one in _without_claim(owner):
            made = self._claim_for(owner, one)
            if made:
                told.append({"name": one["name"], "resourceClaimName": made})
        if told != (status.get("resourceClaimStatuses") or []):
            self._store.write(self.owners, owner | {"status": status | {"resourceClaimStatuses": told}})

    def _claim_for(self, owner: Json, stated: Json) -> str:
        """Return the name of the claim for an entry of an owner; empty if the owner has to wait for the claim."""
        return self._make(owner, stated)

    def _wait(self, key: str, at: Name, owner: Json) -> str:
        """Enqueue an owner again after the next change of an object; return an empty text."""
        metadata = owner["metadata"]
        self._without.setdefault((key, at), set()).add((metadata["namespace"], metadata["name"]))
        return ""

    def _make(self, of: Json, stated: Json) -> str:
        """Create a claim from a template; return its name, or an empty text if the template does not exist."""
        metadata, namespace = of["metadata"], of["metadata"]["namespace"]
        at = (namespace, stated["resourceClaimTemplateName"])
        template = self._store.get(TEMPLATES.key, *at)
        if template is None:
            return self._wait(TEMPLATES.key, at, of)
        spec = copy.deepcopy(template.object["spec"])
        given = spec.get("metadata") or {}
        owner = {field: of[field] for field in ("apiVersion", "kind")}
        owner |= {field: metadata[field] for field in ("name", "uid")}
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


class TemplateController(GroupTemplateController):
    """Creates claims for pods that name templates; a claim of the pod's group is only named in the pod's status."""

    owners = PODS

    def _claim_for(self, owner: Json, stated: Json) -> str:
        name = (owner["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if not name:
            return self._make(owner, stated)
        at = (owner["metadata"]["namespace"], name)
        group = self._store.get(POD_GROUPS, *at)
        if group is None:
            return self._wait(POD_GROUPS, at, owner)
        if stated not in (group.object["spec"].get("resourceClaims") or ()):
            return self._make(owner, stated)
        told = (group.object.get("status") or {}).get("resourceClaimStatuses") or ()
        made = next((one["resourceClaimName"] for one in told if one["name"] == stated["name"]), "")
        return made or self._wait(POD_GROUPS, at, owner)


def _begins(owner: str, claim: str) -> str:
    """Return the start of the name of a claim; the names of owner and entry are cut in proportion if too long."""
    whole = f"{owner}-{claim}-"
    if len(whole) <= _LONGEST:
        return whole
    first = f"{owner[: len(owner) * _LONGEST // len(whole)]}-"
    return first + claim[: len(claim) * _LONGEST // len(whole)]


def _without_claim(owner: Json) -> list[Json]:
    """Return the resourceClaims entries of a pod or pod group that name a template and have no claim."""
    told = {one["name"] for one in (owner.get("status") or {}).get("resourceClaimStatuses") or ()}
    stated = owner["spec"].get("resourceClaims") or ()
    return [one for one in stated if one.get("resourceClaimTemplateName") and one["name"] not in told]


def _lacks_claims(owner: Json) -> bool:
    return bool(owner["spec"].get("resourceClaims")) and not is_done(owner) and bool(_without_claim(owner))


def is_done(obj: Json) -> bool:
    """Return whether an object is a pod that needs no devices any more: ended, or being deleted without a node."""
    if obj["kind"] != "Pod":
        return False
    ended = obj["status"].get("phase") in ("Succeeded", "Failed")
    never = bool(obj["metadata"].get("deletionTimestamp")) and not obj["spec"].get("nodeName")
    return ended or never


class ReservationController(Controller):
    """Removes deleted and finished pods and deleted pod groups from claims, and deallocates unused claims."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._claims: UidIndex[Name] = UidIndex()
        """Names of the claims that are reserved for a pod or pod group."""

    def on_event(self, event: StoreEvent) -> None:
        """Enqueue changed claims, and claims of pods that ended and of deleted pod groups."""
        obj = event.entry.object
        if event.key == CLAIMS.key:
            before = () if event.before is None else _uids_of(event.before.object)
            self._claims.update(event.entry.key, before, () if event.type == "DELETED" else _uids_of(obj))
            if event.type != "DELETED":
                self.enqueue(event.entry.key)
        elif event.key in _USERS.values() and (event.type == "DELETED" or is_done(obj)):
            for name in self._claims.of(obj["metadata"]["uid"]):
                self.enqueue(name)

    def reconcile(self, name: Name) -> None:
        """Remove pods and pod groups that no longer use a claim from its reservedFor."""
        entry = self._store.get(CLAIMS.key, *name)
        if entry is None:
            return
        claim = entry.object
        users = (claim.get("status") or {}).get("reservedFor") or []
        known = _users(claim)
        left = [one for one in users if one not in known or self._is_used_by(claim, one)]
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
        pod = None if owner is None else self._store.get(PODS, name[0], owner["name"])
        if owner is None or pod is None:
            return
        if pod.object["metadata"]["uid"] != owner["uid"] or is_done(pod.object):
            delete(self._backend, CLAIMS, entry, DeleteOptions())

    def _is_used_by(self, claim: Json, user: Json) -> bool:
        entry = self._store.get(_USERS[_kind_of(user)], claim["metadata"]["namespace"], user["name"])
        return entry is not None and entry.object["metadata"]["uid"] == user["uid"] and not is_done(entry.object)


_USERS: Final = {("", "pods"): PODS, ("scheduling.k8s.io", "podgroups"): POD_GROUPS}
"""The kinds of the objects for which claims are reserved, by API group and resource."""


def _kind_of(user: Json) -> tuple[str, str]:
    return user.get("apiGroup") or "", user.get("resource") or ""


def _users(claim: Json) -> list[Json]:
    """Return the pods and pod groups that a claim is reserved for."""
    users = (claim.get("status") or {}).get("reservedFor") or ()
    return [one for one in users if _kind_of(one) in _USERS]


def _uids_of(claim: Json) -> list[str]:
    """Return the UIDs of the pods and pod groups that a claim is reserved for."""
    return [one["uid"] for one in _users(claim)]
