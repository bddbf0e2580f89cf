"""The newest known version of each object of a resource, and what a list or a watch event changes in it.

It knows no requests. An object that cannot be used is reported once for each of its versions and counts as one that is
not there, because deciding on what no longer holds would be worse; policies are the exception, whose last good version
stays. Nothing that an object holds is an exception here: what of it can be read says which one it is. What is left out
is said in the log and counted.
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
from policysched.model.lenient_json import UNREADABLE, identity
from policysched.model.objects.meta import Metadata

log = logging.getLogger(__name__)
PORTION = 100
"""How many objects are taken in before the loop gets its turn."""
BURST = 100
"""How many lines about objects that are left out may follow each other."""
PER_SECOND = 1.0
"""How many of these lines a second may follow then."""


class HasMetadata(Protocol):
    """An object of the API."""

    @property
    def metadata(self) -> Metadata:
        """Its identity."""


T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", bound=HasMetadata, contravariant=True)
Key = tuple[str, str]
"""Namespace and name."""
OnBroken = Callable[[ObjectError, bytes], None]
"""Hears of an object that cannot be used, with its JSON."""
_NOBODY: Key = ("", "")
_NO_NAMES = frozenset(("", ".", ".."))


class _Identity(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Peek(msgspec.Struct):
    metadata: _Identity = msgspec.field(default_factory=_Identity)


_PEEK = msgspec.json.Decoder(_Peek)


class TextKeeper(Protocol[T_contra]):
    """Keeps what the API server wrote of objects."""

    incomplete: bool
    """Whether objects that are known are missing."""

    def take(self, obj: T_contra, raw: msgspec.Raw) -> None:
        """Take an object as it is now."""

    def drop(self, obj: T_contra) -> None:
        """Forget an object that is gone."""

    def lacks(self, obj: T_contra) -> bool:
        """Return whether an object is missing."""


@dataclass(slots=True)
class _Objects(Generic[T]):
    """Objects of a resource as of one moment."""

    known: dict[Key, T] = field(default_factory=dict)
    uids: set[str] = field(default_factory=set)
    """The UIDs of the known objects, of kinds that the state tells apart by them."""
    broken: dict[Key, str] = field(default_factory=dict)
    """The versions of those that cannot be used."""


class ObjectCache(Generic[T]):
    """Known objects by namespace and name."""

    def __init__(self, watched: ApiKind[T], on_broken: OnBroken, texts: TextKeeper[T] | None = None) -> None:
        self._watched = watched
        self._read = watched.decode if watched.make_decoder is None else watched.make_decoder()
        self._texts = texts
        self._on_broken = on_broken
        self._objects: _Objects[T] = _Objects()

    def replacement(self) -> Replacement[T]:
        """Begin to take a whole list, which stands for what is known once all of it is there."""
        return Replacement(self)

    def filling(self, raws: Iterable[msgspec.Raw]) -> Generator[None, None, None]:
        """Take of a list the texts that are missing, pausing now and then; nothing else changes."""
        texts = self._texts
        if texts is None:
            return
        for number, raw in enumerate(raws, 1):
            if number % PORTION == 0:
                yield
            known = self._objects.known.get(identify(raw)[0])
            if known is not None and texts.lacks(known):  # what came meanwhile is newer
                texts.take(known, raw)
        texts.incomplete = False

    def take(self, raw: msgspec.Raw, *, deleted: bool, reach: Callable[[str], None]) -> tuple[T | None, T | None]:
        """Take an object from a watch; give the one that is gone, and the one that came or changed.

        Args:
            raw: The object.
            deleted: Whether it is gone.
            reach: Hears the version, empty where the object does not say it readably, before anything is taken: where
                it raises nothing is, and whoever lists then is told of what is missing.
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
        """Report what came in place of an object."""
        self._on_broken(ObjectError(self._watched.kind, _text(identify(raw)[0]), reason), bytes(raw))

    def _decode(
        self, raw: msgspec.Raw, objects: _Objects[T], known: Mapping[Key, T], reported: Mapping[Key, str]
    ) -> T | None:
        """Decode an object that matters; in place of one that cannot be used give what holds then.

        Args:
            raw: The object.
            objects: Where it belongs.
            known: What was known before.
            reported: The versions that were reported before because they cannot be used.

        Raises:
            OutOfMemoryError: no memory is left to read it.
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
        """Refuse an object that cannot be told from others, or not be asked for."""
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
        """Whether texts are missing."""
        return self._texts is not None and self._texts.incomplete

    def objects(self) -> tuple[T, ...]:
        """Return the known objects as they are now; it may be asked from any thread."""
        return tuple(self._objects.known.values())

    def __len__(self) -> int:
        return len(self._objects.known)


class Replacement(Generic[T]):
    """A whole list on its way to stand for what is known, piece by piece; until its end that stands as it is.

    Who wants to hear of its objects before that asks `taken` after each piece. What was told then is known, whether or
    not the list comes to its end.

    Args:
        cache: What it is for.
    """

    def __init__(self, cache: ObjectCache[T]) -> None:
        self._cache = cache
        self._before, self._found = cache._objects, _Objects[T]()
        self._gone = dict(self._before.known)
        """What was known and has not been in the list yet."""
        self._changed: list[T] = []
        self._replaced: list[Key] = []
        """Those whose names or UIDs others have now."""
        self._by_uid: dict[str, Key] | None = None
        """What of these each UID belonged to, once one is found under another name."""
        self.is_told = False
        """Whether somebody has heard of its objects."""
        if cache._texts is not None:
            cache._texts.incomplete = False  # first of all, because more may be wanted meanwhile

    def take(self, raws: Iterable[msgspec.Raw]) -> None:
        """Take a piece.

        Raises:
            OutOfMemoryError: no memory is left for it.
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
                continue  # the version before of one that cannot be read: another one has its UID now
            old = self._gone.get(key)
            if old is not None and old.metadata.uid == obj.metadata.uid:
                del self._gone[key]
            elif old is not None or obj.metadata.uid in self._before.uids:
                self._replace(None if old is None else key, obj.metadata.uid)
            cache._keep(found, key, obj, raw)
            if old != obj:  # not versions alone: an event may have lied under the same one
                self._changed.append(obj)

    def _replace(self, key: Key | None, uid: str) -> None:
        """Let what is known of a name be gone, where another one has it now, and what has a UID under another name.

        Who is told of it last would take the new one's place away.
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
        """Return what is new or changed since it was asked last, and what is gone as another has its name or UID."""
        changed, gone = self._changed, [self._gone.pop(key) for key in self._replaced]
        self._changed, self._replaced, self.is_told = [], [], True
        self._cache._drop_texts(gone)
        return changed, gone

    def finish(self, *, anew: bool = False) -> tuple[list[T], list[T]]:
        """Let the list stand for what is known; return the changes that were not told, and all else that is gone.

        Args:
            anew: Whether versions say nothing about what was known, so that everything counts as changed.
        """
        cache, found = self._cache, self._found
        if _NOBODY in found.broken and not cache._watched.malformed_is_gone:
            # What does not say its name may be what the list does not have.
            for key in self._gone.keys() - found.known.keys() - set(self._replaced):
                cache._keep(found, key, self._gone.pop(key))
        cache._drop_texts(self._gone.values())
        cache._objects = found
        return list(found.known.values()) if anew else self._changed, list(self._gone.values())

    def abandon(self) -> None:
        """End without the rest of the list, for which another one has to come."""
        cache = self._cache
        if cache._texts is not None:
            cache._texts.incomplete = True
        if self.is_told:
            known = self._gone | self._found.known
            uids = {one.metadata.uid for one in known.values()} if cache._watched.known_by_uid else set()
            cache._objects = _Objects(known, uids - {""}, self._before.broken | self._found.broken)


def no_memory_for(kind: str) -> OutOfMemoryError:
    """Make the error that ends the process: whoever leaves out what there is no memory for decides wrongly."""
    return OutOfMemoryError(f"no memory is left for a {kind}; the process exits; raise its memory limit")


def identify(raw: msgspec.Raw) -> tuple[Key, str]:
    """Read an object's key and its version; empty are those that it does not say readably."""
    try:
        metadata = _PEEK.decode(raw).metadata
    except UNREADABLE:
        found = identity(bytes(raw))
        return (found.namespace, found.name), found.version
    return (metadata.namespace, metadata.name), metadata.resource_version


class ReadingFailedError(ObjectError):
    """Reading an object failed, by no fault that anybody looked for: the mistake may be the program's."""


def _as_object_error(error: Exception, kind: str, key: Key) -> ObjectError:
    if isinstance(error, ObjectError):
        return error
    made = ReadingFailedError(kind, _text(key), f"reading it failed: {error!r}")
    made.__cause__ = error
    return made


def _text(key: Key) -> str:
    return "/".join(filter(None, key))


class LeftOutReason(StrEnum):
    """Why an object is left out, as the counter names it."""

    MALFORMED = "malformed"
    FAILED = "failed"
    """It can be read, and taking it in failed."""


class LeftOutObjects:
    """Logs and counts the objects that cannot be read and are left out.

    Args:
        monotonic: gives seconds that never go back.
        registry: where the counter is registered.
    """

    def __init__(self, monotonic: Callable[[], float], registry: CollectorRegistry | None = None) -> None:
        self._counter = Counter(
            "policysched_objects_left_out",
            "Object versions that were left out because they cannot be used, by kind and reason.",
            ["kind", "reason"],
            registry=registry,
        )
        self._monotonic = monotonic
        self._lines, self._filled_at, self._unsaid = float(BURST), monotonic(), 0

    def malformed(self, error: ObjectError, _: bytes = b"") -> None:
        """Record an object that cannot be read."""
        self._counter.labels(error.kind, LeftOutReason.MALFORMED.value).inc()
        unforeseen = error if isinstance(error, ReadingFailedError) else None  # then where it failed is shown, too
        self._say(f"left out an object that cannot be used: {error}", unforeseen)

    def failed(self, kind: str, obj: HasMetadata, error: Exception) -> None:
        """Record an object that could not be taken in, or out."""
        self._counter.labels(kind, LeftOutReason.FAILED.value).inc()
        namespace, name = obj.metadata.namespace, obj.metadata.name
        key = f"{namespace}/{name}" if namespace else name
        self._say(str(ObjectError(kind, key, f"left out, because processing it failed: {error!r}")), error)

    def _say(self, text: str, error: Exception | None = None) -> None:
        now = self._monotonic()
        self._lines = min(BURST, self._lines + (now - self._filled_at) * PER_SECOND)
        self._filled_at = now
        if self._lines < 1:
            self._unsaid += 1
            return
        self._lines -= 1
        if self._unsaid:
            log.error("%d more object(s) were left out and not logged one by one", self._unsaid)
            self._unsaid = 0
        log.error("%s", text, exc_info=error)
