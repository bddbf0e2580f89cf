"""The garbage collector and the namespace controller: what goes when its owner or its namespace goes.

Dependents are found by an index of owner references kept from the changes, so that a deletion does not search all
objects.
"""

from __future__ import annotations

from collections.abc import Callable

from policysched.sandbox.controllers.controller import Controller, Name
from policysched.sandbox.objects import Json
from policysched.sandbox.objects.resources import builtin
from policysched.sandbox.storage.deletion import DeleteOptions, delete
from policysched.sandbox.storage.store import Backend, Stored, StoreEvent
from policysched.sandbox.storage.writes import WriteOptions, create, store_update

Place = tuple[str, Name]
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"


class GarbageCollector(Controller):
    """Deletes dependents after, or with their finalizer before, their owner, or orphans them; its names are UIDs."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._dependents: dict[str, set[Place]] = {}
        self._owners: dict[str, Place] = {}

    def hear(self, event: StoreEvent) -> None:
        """Index the object's owners, and queue owners that went or wait."""
        metadata, place = event.entry.object["metadata"], (event.key, event.entry.key)
        owners = [reference["uid"] for reference in metadata.get("ownerReferences") or ()]
        for uid in owners:
            self._index(uid, place, add=event.type != "DELETED")
        if event.type == "DELETED":
            if metadata["uid"] in self._dependents:
                self.enqueue(("", metadata["uid"]))
            for uid in owners:
                if uid in self._owners:
                    self.enqueue(("", uid))
        elif metadata.get("deletionTimestamp") and {_FOREGROUND, _ORPHAN} & set(metadata.get("finalizers") or ()):
            self._owners[metadata["uid"]] = place
            self.enqueue(("", metadata["uid"]))

    def _index(self, uid: str, place: Place, *, add: bool) -> None:
        if add:
            self._dependents.setdefault(uid, set()).add(place)
        else:
            self._dependents.get(uid, set()).discard(place)

    def reconcile(self, name: Name) -> None:
        """Delete or orphan an owner's dependents, and let the owner go when that is done."""
        uid = name[1]
        owner = self._owner(uid)
        dependents = sorted(self._dependents.get(uid, ()))
        if owner is not None and _ORPHAN in (owner.object["metadata"].get("finalizers") or ()):
            for place in dependents:
                self._disown(place, uid)
            self._release(uid, owner, _ORPHAN)
            self._dependents.pop(uid, None)
            return
        for place in dependents:
            self._delete(place, uid)
        if owner is not None and not self._dependents.get(uid):
            self._release(uid, owner, _FOREGROUND)

    def _owner(self, uid: str) -> Stored | None:
        place = self._owners.get(uid)
        entry = self._backend.store.get(place[0], *place[1]) if place else None
        return entry if entry and entry.object["metadata"]["uid"] == uid else None

    def _delete(self, place: Place, uid: str) -> None:
        entry = self._backend.store.get(place[0], *place[1])
        resource = self._backend.registry.stored_as(place[0])
        if entry is None or resource is None or not _owned(entry, uid):
            self._index(uid, place, add=False)
        elif not entry.object["metadata"].get("deletionTimestamp"):
            delete(self._backend, resource, entry, DeleteOptions(propagation="Background"))

    def _disown(self, place: Place, uid: str) -> None:
        entry = self._backend.store.get(place[0], *place[1])
        if entry is not None and _owned(entry, uid):
            metadata = entry.object["metadata"]
            kept = [each for each in metadata["ownerReferences"] if each["uid"] != uid]
            self._backend.store.write(place[0], entry.object | {"metadata": metadata | {"ownerReferences": kept}})

    def _release(self, uid: str, owner: Stored, finalizer: str) -> None:
        resource = self._backend.registry.stored_as(self._owners.pop(uid)[0])
        metadata = dict(owner.object["metadata"])
        metadata["finalizers"] = [each for each in metadata["finalizers"] if each != finalizer]
        if resource is not None:
            store_update(self._backend, resource, owner.object | {"metadata": metadata})


def _owned(entry: Stored, uid: str) -> bool:
    return any(each["uid"] == uid for each in entry.object["metadata"].get("ownerReferences") or ())


class NamespaceController(Controller):
    """Gives new namespaces their default service account and empties those that are deleted."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._ending: set[str] = set()

    def hear(self, event: StoreEvent) -> None:
        """Queue new and ending namespaces, and those that something leaves while they end."""
        if event.key == "namespaces":
            if event.type != "DELETED":
                self.enqueue(event.entry.key)
        elif event.type == "DELETED" and event.entry.key[0] in self._ending:
            self.enqueue(("", event.entry.key[0]))

    def reconcile(self, name: Name) -> None:
        """Furnish or empty a namespace."""
        entry, namespace = self._backend.store.get("namespaces", *name), name[1]
        if entry is None:
            self._ending.discard(namespace)
        elif entry.object["metadata"].get("deletionTimestamp"):
            self._empty(namespace)
        elif self._backend.store.get("serviceaccounts", namespace, "default") is None:
            account: Json = {"metadata": {"name": "default"}}
            create(self._backend, builtin("serviceaccounts"), namespace, account, WriteOptions(loaded=True))

    def _empty(self, namespace: str) -> None:
        self._ending.add(namespace)
        left = False
        for key in self._backend.store.resources():
            resource = self._backend.registry.stored_as(key)
            if resource is None or not resource.namespaced:
                continue
            for entry in self._backend.store.entries(key, namespace):
                _, gone = delete(self._backend, resource, entry, DeleteOptions())
                left = left or not gone
        if not left:
            self._ending.discard(namespace)
            self._backend.store.remove("namespaces", "", namespace)
