"""The newest known version of each object of a resource, updated by lists and watch events.

This module sends no requests. An unusable object is reported once per version and treated as absent, because decisions
on outdated objects would be worse. Policies are the exception: their last good version stays. No content of an object
raises an exception here; its readable part identifies the object. Objects that are left out are logged and counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import msgspec
from prometheus_client import CollectorRegistry, Counter

from policysched.errors import OutOfMemoryError
from policysched.model.decode import ObjectError
from policysched.model.kinds import ApiKind
from policysched.model.objects.meta import Metadata
from policysched.reading.lenient_json import UNREADABLE, identity

log = logging.getLogger(__name__)
CHUNK = 100
"""Largest number of list items that are processed without yielding to the event loop."""
BURST = 100
"""Largest number of log lines about skipped objects in a burst; further skipped objects are only counted."""
PER_SECOND = 1.0
"""Log lines about skipped objects per second after a burst."""


class HasMetadata(Protocol):
    """Interface of an API object with metadata."""

    @property
    def metadata(self) -> Metadata:
        """Name, namespace, UID and resourceVersion of the object."""


T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", bound=HasMetadata, contravariant=True)
Key = tuple[str, str]
"""Namespace and name of an object."""
OnBroken = Callable[[ObjectError, bytes], None]
"""Callback for an unusable object; receives the error and the JSON of the object."""
_NO_KEY: Key = ("", "")
_NO_NAMES = frozenset(("", ".", ".."))


class _Identity(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Peek(msgspec.Struct):
    metadata: _Identity = msgspec.field(default_factory=_Identity)


_PEEK = msgspec.json.Decoder(_Peek)


class TextKeeper(Protocol[T_contra]):
    """Interface of a store for the raw JSON of objects."""

    incomplete: bool
    """Whether the JSON of some known objects is missing."""

    def take(self, obj: T_contra, raw: msgspec.Raw) -> None:
        """Store the newest JSON of an object."""

    def drop(self, obj: T_contra) -> None:
        """Drop the JSON of a deleted object."""

    def lacks(self, obj: T_contra) -> bool:
        """Return whether the JSON of an object is wanted but not stored."""


@dataclass(slots=True)
class _Objects(Generic[T]):
    """The known objects of a resource at one time."""

    known: dict[Key, T] = field(default_factory=dict)
    uids: set[str] = field(default_factory=set)
    """UIDs of the known objects, for kinds whose state is indexed by UID."""
    broken: dict[Key, str] = field(default_factory=dict)
    """The resourceVersions of unusable objects."""


class ObjectCache(Generic[T]):
    """The known objects of one resource by namespace and name."""

    def __init__(self, watched: ApiKind[T], on_broken: OnBroken, texts: TextKeeper[T] | None = None) -> None:
        self._watched = watched
        self._read = watched.decode if watched.make_decoder is None else watched.make_decoder()
        self._texts = texts
        self._on_broken = on_broken
        self._objects: _Objects[T] = _Objects()

    def replacement(self) -> Replacement[T]:
        """Begin to process a complete list, which replaces the known objects once all its items were processed."""
        return Replacement(self)

    def filling(self, raws: Iterable[msgspec.Raw]) -> Generator[None, None, None]:
        """Store the missing JSON of known objects from a list, yielding after each chunk; ignore other objects."""
        texts = self._texts
        if texts is None:
            return
        for number, raw in enumerate(raws, 1):
            if number % CHUNK == 0:
                yield
            known = self._objects.known.get(identify(raw)[0])
            if known is not None and texts.lacks(known):  # texts that arrived since are newer
                texts.take(known, raw)
        texts.incomplete = False

    def take(self, raw: msgspec.Raw, *, deleted: bool, reach: Callable[[str], None]) -> tuple[T | None, T | None]:
        """Apply a watch event; return the object that it deletes, and the object that it adds or changes.

        Args:
            raw: The object.
            deleted: Whether the event deletes the object.
            reach: Called with the resourceVersion (empty if unreadable) before anything changes; an exception from it
                leaves the cache unchanged, and the next list reports the difference.
        """
        objects = self._objects
        obj = None if deleted else self._decode(raw, objects, objects.known, objects.broken)
        if obj is None:
            key, version = identify(raw)
            reach(version)
            if deleted:
                objects.broken.pop(key, None)
            return self._forget(key), None
        key = (obj.metadata.namespace, obj.metadata.name)
        old = objects.known.get(key)
        reach(identify(raw)[1] if obj is old else obj.metadata.resource_version)
        if obj is old:
            return None, None
        anew = old is not None and old.metadata.uid != obj.metadata.uid
        gone = self._forget(key) if anew else None
        self._keep(objects, key, obj, raw)
        return gone, obj

    def skip(self, raw: msgspec.Raw, reason: str) -> None:
        """Report to `on_broken` a watch event that contains no usable object."""
        self._on_broken(ObjectError(self._watched.kind, _text(identify(raw)[0]), reason), bytes(raw))

    def _decode(
        self, raw: msgspec.Raw, objects: _Objects[T], known: Mapping[Key, T], reported: Mapping[Key, str]
    ) -> T | None:
        """Decode an object; return None if no plugin needs it, or its previous version if it is unusable.

        Args:
            raw: The object.
            objects: Where the object will be stored.
            known: The objects known before.
            reported: The unusable versions that were already reported.

        Raises:
            OutOfMemoryError: no memory is left to decode the object.
        """
        try:
            obj = self._read(bytes(raw))
            self._check(obj.metadata, objects)
        except MemoryError as error:
            raise no_memory_for(self._watched.kind) from error
        except Exception as error:
            key, version = identify(raw)
            if not version or reported.get(key) != version:
                self._on_broken(_as_object_error(error, self._watched.kind, key), bytes(raw))
            objects.broken[key] = version
            return None if self._watched.malformed_is_gone else known.get(key)
        return obj if self._watched.keep(obj) else None

    def _check(self, metadata: Metadata, objects: _Objects[T]) -> None:
        """Raise `ObjectError` for an invalid name, or for a UID that another object has."""
        name, namespace = metadata.name, metadata.namespace
        if name in _NO_NAMES or "/" in name or "%" in name or "/" in namespace or "%" in namespace:
            raise ObjectError(self._watched.kind, name, "its name or namespace is not valid", "metadata.name")
        if metadata.uid in objects.uids:
            old = objects.known.get((namespace, name))
            if old is None or old.metadata.uid != metadata.uid:
                raise ObjectError(
                    self._watched.kind, _text((namespace, name)), "another object has the same UID", "metadata.uid"
                )

    def _keep(self, objects: _Objects[T], key: Key, obj: T, raw: msgspec.Raw | None = None) -> None:
        objects.known[key] = obj
        if self._texts is not None and raw is not None:
            self._texts.take(obj, raw)
        if self._watched.known_by_uid and obj.metadata.uid:
            objects.uids.add(obj.metadata.uid)

    def _forget(self, key: Key) -> T | None:
        gone = self._objects.known.pop(key, None)
        if gone is not None:
            self._objects.uids.discard(gone.metadata.uid)
            self._drop_texts((gone,))
        return gone

    def _drop_texts(self, gone: Iterable[T]) -> None:
        if self._texts is not None:
            for obj in gone:
                self._texts.drop(obj)

    @property
    def lacks_texts(self) -> bool:
        """Whether the JSON of some known objects is missing."""
        return self._texts is not None and self._texts.incomplete

    def objects(self) -> tuple[T, ...]:
        """Return the known objects; thread-safe."""
        return tuple(self._objects.known.values())

    def __len__(self) -> int:
        return len(self._objects.known)


class Replacement(Generic[T]):
    """A list that is processed in chunks and replaces the known objects when it is complete.

    To receive objects earlier, call `taken` after each chunk. Objects returned by `taken` stay known even if the list
    fails.

    Args:
        cache: The cache to update.
    """

    def __init__(self, cache: ObjectCache[T]) -> None:
        self._cache = cache
        self._before, self._found = cache._objects, _Objects[T]()
        self._gone = dict(self._before.known)
        """Known objects that the processed part of the list does not contain; at the end, the deleted objects."""
        self._changed: list[T] = []
        self._replaced: list[Key] = []
        """Keys of known objects whose name or UID now belongs to another object."""
        self._by_uid: dict[str, Key] | None = None
        """Key of each UID in `_gone`; built when a UID appears under another name."""
        self.is_told = False
        """Whether `taken` has passed changes to the caller at least once."""
        if cache._texts is not None:
            cache._texts.incomplete = False  # first, because more texts can be wanted while the list is read

    def take(self, raws: Iterable[msgspec.Raw]) -> None:
        """Process a chunk of the items of the list.

        Raises:
            OutOfMemoryError: no memory is left for an object.
        """
        cache, found = self._cache, self._found
        for raw in raws:
            obj = cache._decode(raw, found, self._gone, self._before.broken)
            if obj is None:
                continue
            key = (obj.metadata.namespace, obj.metadata.name)
            if key in found.known:
                cache.skip(raw, "the list has another object of this name")
                continue
            if obj.metadata.uid in found.uids:
                continue  # the previous version of an unreadable object, whose UID another object has now
            old = self._gone.get(key)
            if old is not None and old.metadata.uid == obj.metadata.uid:
                del self._gone[key]
            elif old is not None or obj.metadata.uid in self._before.uids:
                self._replace(None if old is None else key, obj.metadata.uid)
            cache._keep(found, key, obj, raw)
            if old != obj:  # compare contents: an event can have had the same resourceVersion with other contents
                self._changed.append(obj)

    def _replace(self, key: Key | None, uid: str) -> None:
        """Mark the known object of a name, and the known object of a UID that has another name now, as deleted.

        The deletion must be reported before the addition, or it would remove the new object.
        """
        if key is not None:
            self._replaced.append(key)
        if uid not in self._before.uids:
            return
        if self._by_uid is None:
            self._by_uid = {one.metadata.uid: key for key, one in self._gone.items()}
        before = self._by_uid.get(uid)
        if before in self._gone and before not in self._replaced:
            self._replaced.append(before)

    def taken(self) -> tuple[list[T], list[T]]:
        """Return the objects that changed since the last call, and the known objects replaced by others since then."""
        changed, gone = self._changed, [self._gone.pop(key) for key in self._replaced]
        self._changed, self._replaced, self.is_told = [], [], True
        self._cache._drop_texts(gone)
        return changed, gone

    def finish(self, *, anew: bool = False) -> tuple[list[T], list[T]]:
        """Replace the known objects by the complete list; return the remaining changed objects and the deleted objects.

        Return the changes not yet returned by `taken`, and the deleted objects.

        Args:
            anew: Whether to treat all objects as changed, because their versions cannot be compared with the known
                ones.
        """
        cache, found = self._cache, self._found
        if _NO_KEY in found.broken and not cache._watched.malformed_is_gone:
            # An object without a readable name may be one of those that are missing in the list.
            for key in self._gone.keys() - found.known.keys() - set(self._replaced):
                cache._keep(found, key, self._gone.pop(key))
        cache._drop_texts(self._gone.values())
        cache._objects = found
        return list(found.known.values()) if anew else self._changed, list(self._gone.values())

    def abandon(self) -> None:
        """Stop processing an incomplete list; the caller must start a new list."""
        cache = self._cache
        if cache._texts is not None:
            cache._texts.incomplete = True
        if self.is_told:
            known = self._gone | self._found.known
            uids = {one.metadata.uid for one in known.values()} if cache._watched.known_by_uid else set()
            cache._objects = _Objects(known, uids - {""}, self._before.broken | self._found.broken)


def no_memory_for(kind: str) -> OutOfMemoryError:
    """Return the error for an object that does not fit in memory; the process must end to avoid wrong decisions."""
    return OutOfMemoryError(f"no memory is left for a {kind}; the process exits; raise its memory limit")


def identify(raw: msgspec.Raw) -> tuple[Key, str]:
    """Read namespace, name and resourceVersion of an object; unreadable parts are empty."""
    try:
        metadata = _PEEK.decode(raw).metadata
    except UNREADABLE:
        found = identity(bytes(raw))
        return (found.namespace, found.name), found.version
    return (metadata.namespace, metadata.name), metadata.resource_version


class ReadingFailedError(ObjectError):
    """Error: decoding an object failed with an unexpected exception, possibly because of a bug."""


def _as_object_error(error: Exception, kind: str, key: Key) -> ObjectError:
    if isinstance(error, ObjectError):
        return error
    made = ReadingFailedError(kind, _text(key), f"reading it failed: {error!r}")
    made.__cause__ = error
    return made


def _text(key: Key) -> str:
    return "/".join(filter(None, key))


class LeftOutReason(StrEnum):
    """Reason for which an object is skipped, as a label value of a metric."""

    MALFORMED = "malformed"
    FAILED = "failed"
    """The object is readable, but processing it failed."""


class LeftOutObjects:
    """Logs and counts skipped objects.

    Args:
        monotonic: monotonic clock in seconds.
        registry: registry of the counter.
    """

    def __init__(self, monotonic: Callable[[], float], registry: CollectorRegistry | None = None) -> None:
        self._counter = Counter(
            "policysched_objects_left_out",
            "Object versions that were left out because they cannot be used, by kind and reason.",
            ["kind", "reason"],
            registry=registry,
        )
        self._monotonic = monotonic
        self._lines, self._filled_at, self._unlogged = float(BURST), monotonic(), 0

    def malformed(self, error: ObjectError, _: bytes = b"") -> None:
        """Log and count an object that cannot be decoded."""
        self._counter.labels(error.kind, LeftOutReason.MALFORMED.value).inc()
        unforeseen = error if isinstance(error, ReadingFailedError) else None  # the log then shows the traceback
        self._log(f"left out an object that cannot be used: {error}", unforeseen)

    def failed(self, kind: str, obj: HasMetadata, error: Exception) -> None:
        """Log and count an object that was decoded, but that a handler failed to add or delete."""
        self._counter.labels(kind, LeftOutReason.FAILED.value).inc()
        namespace, name = obj.metadata.namespace, obj.metadata.name
        key = f"{namespace}/{name}" if namespace else name
        self._log(str(ObjectError(kind, key, f"left out, because processing it failed: {error!r}")), error)

    def _log(self, text: str, error: Exception | None = None) -> None:
        now = self._monotonic()
        self._lines = min(BURST, self._lines + (now - self._filled_at) * PER_SECOND)
        self._filled_at = now
        if self._lines < 1:
            self._unlogged += 1
            return
        self._lines -= 1
        if self._unlogged:
            log.error("%d more object(s) were left out and not logged one by one", self._unlogged)
            self._unlogged = 0
        log.error("%s", text, exc_info=error)
