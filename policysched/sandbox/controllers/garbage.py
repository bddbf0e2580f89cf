"""The garbage collector: what an owner leaves behind is deleted, or orphaned where that was asked for.

It reads owner references alone. Dependents are found by an index kept from the changes, so that a deletion does
not search all objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policysched.sandbox.controllers.backlog import Backlog
from policysched.sandbox.objects import Json
from policysched.sandbox.storage.deletion import DeleteOptions, delete
from policysched.sandbox.storage.writes import store_update

if TYPE_CHECKING:
    from policysched.sandbox.storage.backend import Backend
    from policysched.sandbox.storage.store import Stored, StoreEvent

Place = tuple[str, tuple[str, str]]
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"


class Garbage:
    """Deletes dependents after, or with their finalizer before, their owner."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._backlog = Backlog()
        self._dependents: dict[str, set[Place]] = {}
        self._owners: dict[str, Place] = {}

    def hear(self, event: StoreEvent) -> bool:
        """Index the object's owners, and note owners that went or wait."""
        metadata, place = event.entry.object["metadata"], (event.key, event.entry.key)
        for reference in metadata.get("ownerReferences") or ():
            self._index(reference["uid"], place, add=event.type != "DELETED")
        waiting = set(metadata.get("finalizers") or ()) & {_FOREGROUND, _ORPHAN}
        if event.type == "DELETED":
            noted = metadata["uid"] in self._dependents and self._backlog.add(("", metadata["uid"]))
            return self._recheck(metadata) or noted
        if metadata.get("deletionTimestamp") and waiting:
            self._owners[metadata["uid"]] = place
            return self._backlog.add(("", metadata["uid"]))
        return False

    def _recheck(self, metadata: Json) -> bool:
        owners = [reference["uid"] for reference in metadata.get("ownerReferences") or ()]
        waiting = [uid for uid in owners if uid in self._owners]
        for uid in waiting:
            self._backlog.add(("", uid))
        return bool(waiting)

    def _index(self, uid: str, place: Place, *, add: bool) -> None:
        if add:
            self._dependents.setdefault(uid, set()).add(place)
        else:
            self._dependents.get(uid, set()).discard(place)

    def work(self, most: int) -> bool:
        """Follow up on owners."""
        return self._backlog.work(most, lambda name: self._look(name[1]))

    def _look(self, uid: str) -> None:
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
        key, _ = self._owners.pop(uid)
        resource = self._backend.registry.stored_as(key)
        metadata = dict(owner.object["metadata"])
        metadata["finalizers"] = [each for each in metadata["finalizers"] if each != finalizer]
        if resource is not None:
            store_update(self._backend, resource, owner.object | {"metadata": metadata})


def _owned(entry: Stored, uid: str) -> bool:
    return any(each["uid"] == uid for each in entry.object["metadata"].get("ownerReferences") or ())
