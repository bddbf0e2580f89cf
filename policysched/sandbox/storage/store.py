"""The objects by resource, namespace and name, their versions and their history, and what all writers share.

One counter gives resource versions, one ring of events per resource is what watches go back in. Stored objects are
never changed in place: a write stores a new dictionary, so that lists, watches and history share objects and their
encoded bytes without copying. Clock and randomness come from outside, so that a test can repeat a run exactly.
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
"""How much the versions in the history of a resource may take as texts; as objects they take some three times that.
Units: bytes."""
SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""What generated names are made of: no vowels, which might make words."""


@dataclass(slots=True)
class Stored:
    """One version of an object, with its encodings kept once made."""

    object: Json
    revision: int
    size: int = 0
    """How long its text is. Units: bytes."""
    encodings: dict[str, bytes] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        metadata = self.object["metadata"]
        return metadata.get("namespace", ""), metadata["name"]

    def encoded(self, form: str, convert: Callable[[Json], Json] | None) -> bytes:
        """Encode the object, converted to the API version named by form."""
        found = self.encodings.get(form)
        if found is None:
            found = encode(convert(self.object) if convert else self.object)
            self.encodings[form] = found
        return found


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """A change of a resource: ADDED, MODIFIED or DELETED, the entry after it and the one before."""

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
        """How long the texts of the history of each resource are together."""

    def get(self, key: str, namespace: str, name: str) -> Stored | None:
        """Return the present version of an object."""
        return self._objects.get(key, {}).get((namespace, name))

    def entries(self, key: str, namespace: str = "") -> list[Stored]:
        """Return the present objects, of one namespace where given, by namespace and name."""
        objects = self._objects.get(key, {})
        keys = [pair for pair in objects if pair[0] == namespace] if namespace else list(objects)
        return [objects[pair] for pair in sorted(keys)]

    def values(self, key: str) -> list[Stored]:
        """Return the present objects in no particular order."""
        return list(self._objects.get(key, {}).values())

    def resources(self) -> list[str]:
        """Return the storage keys that hold objects."""
        return [key for key, objects in self._objects.items() if objects]

    def write(self, key: str, obj: Json) -> Stored:
        """Store an object as a new version and tell everyone."""
        entry = self._version(obj)
        objects = self._objects.setdefault(key, {})
        before = objects.get(entry.key)
        objects[entry.key] = entry
        self._tell(key, StoreEvent(key, "MODIFIED" if before else "ADDED", entry.revision, entry, before))
        return entry

    def remove(self, key: str, namespace: str, name: str, last: Json | None = None) -> Stored:
        """Take an object out and tell everyone; the last event carries `last` or what was stored."""
        before = self._objects[key].pop((namespace, name))
        entry = self._version(last or before.object)
        self._tell(key, StoreEvent(key, "DELETED", entry.revision, entry, before))
        return entry

    def _version(self, obj: Json) -> Stored:
        self.revision += 1
        metadata = obj["metadata"] | {"resourceVersion": str(self.revision)}
        made = obj | {"metadata": metadata}
        return Stored(made, self.revision, len(encode(made)))

    def _tell(self, key: str, event: StoreEvent) -> None:
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
        """Return the events after a version, or nothing where the history is too short or the version not ours."""
        if not self.oldest(key) <= revision <= self.revision:
            return None
        newer: list[StoreEvent] = []
        for event in reversed(self._events.get(key, ())):
            if event.revision <= revision:
                break
            newer.append(event)
        return newer[::-1]

    def oldest(self, key: str) -> int:
        """Return the version after which the history of a resource is whole."""
        return self._forgotten.get(key, self._first)

    def forget(self) -> None:
        """Drop the history, so that every older version is too old to watch from."""
        for key in self._objects:
            self._events[key] = deque()
            self._sizes[key] = 0
            self._forgotten[key] = self.revision

    def listen(self, key: str, listener: Callable[[StoreEvent], None]) -> Callable[[], None]:
        """Call the listener at each change of a resource (ANY: of all); returns the way to stop it."""
        listeners = self._listeners.setdefault(key, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener)


@dataclass(slots=True)
class Backend:
    """What one sandbox keeps: objects, and the resources that it serves, a definition's as long as it is stored."""

    now: Callable[[], datetime]
    random: random.Random
    history: int = 20_000
    first_version: int = 1
    registry: Registry = field(default_factory=Registry)
    applied: dict[str, dict[str, Json]] = field(default_factory=dict)
    """What each manager applied last of an object, by the object's UID: no owners of fields are kept."""
    store: ObjectStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = ObjectStore(self.history, self.first_version)
        self.store.listen(DEFINITIONS, self._serve)
        self.store.listen(ANY, self._forget_applied)

    def _forget_applied(self, event: StoreEvent) -> None:
        if event.type == "DELETED":
            self.applied.pop(event.entry.object["metadata"]["uid"], None)

    def _serve(self, event: StoreEvent) -> None:
        """Serve what a definition defines in the instant it is stored, and take its objects with it."""
        crd = event.entry.object
        name = crd["metadata"]["name"]
        if event.type == "DELETED":
            for entry in self.store.values(name):
                self.store.remove(name, *entry.key)
        self.registry.serve(crd, gone=event.type == "DELETED")
        if event.type != "DELETED" and not is_true(crd, "Established"):
            self.store.write(DEFINITIONS, _accepted(crd, self.timestamp()))

    def timestamp(self, plus_seconds: float = 0) -> str:
        """Write the present time, or one later on, as metadata has it."""
        seconds = int(self.now().timestamp() + plus_seconds)
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_uid(self) -> str:
        """Draw a unique id."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Draw the random end of a generated name."""
        return "".join(self.random.choices(SAFE_LETTERS, k=5))


def is_true(obj: Json, kind: str) -> bool:
    """Whether a condition of an object's status is true."""
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
