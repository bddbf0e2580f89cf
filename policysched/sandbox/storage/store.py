"""Storage of the sandbox: `ObjectStore` for objects and their history; `Backend` for the state of one sandbox.

One counter provides resourceVersions; a bounded list of events per resource is the history for watches. Stored objects
are never changed in place: a write stores a new dict, so lists, watches and history share objects and encoded bytes
without copies. Clock and random source are passed in, so a test can repeat a run exactly.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from policysched.apimachinery import Json, encode
from policysched.apimachinery.resources import DEFINITIONS, Registry

ANY = "*"
HISTORY_BYTES: Final = 64 << 20
"""Largest size of a resource's history as JSON; beyond it older versions are dropped. Units: bytes.

In memory, the history uses about three times as much.
"""
SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of generated names; without vowels, to avoid words."""


@dataclass(slots=True)
class Stored:
    """One version of a stored object, with its cached JSON per API version."""

    object: Json
    revision: int
    size: int = 0
    """Length of the object's JSON. Units: bytes."""
    encodings: dict[str, bytes] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name of the object."""
        metadata = self.object["metadata"]
        return metadata.get("namespace", ""), metadata["name"]

    def encoded(self, form: str, convert: Callable[[Json], Json] | None) -> bytes:
        """Return the JSON of the object, converted by `convert` to an API version; `form` is the cache key."""
        found = self.encodings.get(form)
        if found is None:
            found = encode(convert(self.object) if convert else self.object)
            self.encodings[form] = found
        return found


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """A change of an object: ADDED, MODIFIED or DELETED, with the object after and before the change."""

    key: str
    type: str
    revision: int
    entry: Stored
    before: Stored | None


class ObjectStore:
    """All objects by storage key, namespace and name."""

    def __init__(self, history: int, first: int = 1) -> None:
        self.revision = self._first = first
        self._history = history
        self._objects: dict[str, dict[tuple[str, str], Stored]] = {}
        self._events: dict[str, deque[StoreEvent]] = {}
        self._listeners: dict[str, list[Callable[[StoreEvent], None]]] = {}
        self._forgotten: dict[str, int] = {}
        self._sizes: Counter[str] = Counter()
        """Total size of the JSON in the history of each resource. Units: bytes."""

    def get(self, key: str, namespace: str, name: str) -> Stored | None:
        """Return the current version of an object; None if the object does not exist."""
        return self._objects.get(key, {}).get((namespace, name))

    def entries(self, key: str, namespace: str = "") -> list[Stored]:
        """Return the stored objects, optionally of one namespace, sorted by namespace and name."""
        objects = self._objects.get(key, {})
        keys = [pair for pair in objects if pair[0] == namespace] if namespace else list(objects)
        return [objects[pair] for pair in sorted(keys)]

    def values(self, key: str) -> list[Stored]:
        """Return the stored objects in no particular order."""
        return list(self._objects.get(key, {}).values())

    def resources(self) -> list[str]:
        """Return the storage keys (such as `deployments.apps`) of the resources that have objects."""
        return [key for key, objects in self._objects.items() if objects]

    def write(self, key: str, obj: Json) -> Stored:
        """Store a new version of an object and call the listeners."""
        entry = self._version(obj)
        objects = self._objects.setdefault(key, {})
        before = objects.get(entry.key)
        objects[entry.key] = entry
        self._notify(key, StoreEvent(key, "MODIFIED" if before else "ADDED", entry.revision, entry, before))
        return entry

    def remove(self, key: str, namespace: str, name: str, last: Json | None = None) -> Stored:
        """Remove an object and call the listeners; the event contains `last` if given, otherwise the stored object."""
        before = self._objects[key].pop((namespace, name))
        entry = self._version(last or before.object)
        self._notify(key, StoreEvent(key, "DELETED", entry.revision, entry, before))
        return entry

    def _version(self, obj: Json) -> Stored:
        self.revision += 1
        metadata = obj["metadata"] | {"resourceVersion": str(self.revision)}
        made = obj | {"metadata": metadata}
        return Stored(made, self.revision, len(encode(made)))

    def _notify(self, key: str, event: StoreEvent) -> None:
        events = self._events.setdefault(key, deque())
        events.append(event)
        self._sizes[key] += event.entry.size
        while len(events) > self._history or self._sizes[key] > HISTORY_BYTES:
            oldest = events.popleft()
            self._sizes[key] -= oldest.entry.size
            self._forgotten[key] = oldest.revision
        for listener in (*self._listeners.get(key, ()), *self._listeners.get(ANY, ())):
            listener(event)

    def since(self, key: str, revision: int) -> list[StoreEvent] | None:
        """Return the changes of a resource after a resourceVersion, oldest first.

        None if the history is too short or the version is not one of this store.
        """
        if not self.oldest(key) <= revision <= self.revision:
            return None
        newer: list[StoreEvent] = []
        for event in reversed(self._events.get(key, ())):
            if event.revision <= revision:
                break
            newer.append(event)
        return newer[::-1]

    def oldest(self, key: str) -> int:
        """Return the oldest resourceVersion after which the stored history of a resource is complete."""
        return self._forgotten.get(key, self._first)

    def forget(self) -> None:
        """Drop the history, so that a watch from an older version is rejected as too old."""
        for key in self._objects:
            self._events[key] = deque()
            self._sizes[key] = 0
            self._forgotten[key] = self.revision

    def listen(self, key: str, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """Call a listener at each change of a resource (`ANY`: any resource); the result removes the listener."""
        listeners = self._listeners.setdefault(key, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener)


@dataclass(slots=True)
class Backend:
    """The state of one sandbox: stored objects, served resources, clock and random source."""

    now: Callable[[], datetime]
    random: random.Random
    history: int = 20_000
    first_version: int = 1
    registry: Registry = field(default_factory=Registry)
    applied: dict[str, dict[str, Json]] = field(default_factory=dict)
    """By object UID and field manager: the last server-side applied configuration; field ownership is not stored."""
    store: ObjectStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = ObjectStore(self.history, self.first_version)
        self.store.listen(DEFINITIONS, self._serve)
        self.store.listen(ANY, self._forget_applied)

    def _forget_applied(self, event: StoreEvent) -> None:
        if event.type == "DELETED":
            self.applied.pop(event.entry.object["metadata"]["uid"], None)

    def _serve(self, event: StoreEvent) -> None:
        """Serve the resource of a CustomResourceDefinition; after its deletion, delete the objects of the resource."""
        crd = event.entry.object
        name = crd["metadata"]["name"]
        if event.type == "DELETED":
            for entry in self.store.values(name):
                self.store.remove(name, *entry.key)
        self.registry.serve(crd, gone=event.type == "DELETED")
        if event.type != "DELETED" and not is_true(crd, "Established"):
            self.store.write(DEFINITIONS, _accepted(crd, self.timestamp()))

    def timestamp(self, plus_seconds: float = 0) -> str:
        """Format the current time plus some seconds, as timestamps in object metadata are written."""
        seconds = int(self.now().timestamp() + plus_seconds)
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_uid(self) -> str:
        """Return a random UID."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Return the random suffix of a generated name."""
        return "".join(self.random.choices(SAFE_LETTERS, k=5))


def is_true(obj: Json, kind: str) -> bool:
    """Return whether an object's status has the condition of type `kind` with the status True."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


def _accepted(crd: Json, now: str) -> Json:
    said = (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    )
    conditions = [
        {"lastTransitionTime": now, "message": message, "reason": reason, "status": "True", "type": kind}
        for kind, reason, message in said
    ]
    stored = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
    status = {"acceptedNames": crd["spec"]["names"], "conditions": conditions, "storedVersions": stored}
    return crd | {"status": status}
