"""The objects of one resource in their newest versions, and what each piece of news means for them.

It knows no requests. A malformed object is reported once for each of its versions and counts as one that is not
there, because deciding on what no longer holds would be worse; policies are the exception, whose last good version
stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from policysched.kube.resources import Watched
from policysched.model.decode import ObjectError
from policysched.model.meta import Metadata


class HasMetadata(Protocol):
    """An object of the API."""

    @property
    def metadata(self) -> Metadata:
        """Its identity."""


T = TypeVar("T", bound=HasMetadata)
Key = tuple[str, str]
"""Namespace and name."""
OnBroken = Callable[[ObjectError, bytes], None]
"""Hears of a malformed object, with its JSON."""


class _Identity(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Peek(msgspec.Struct):
    metadata: _Identity = msgspec.field(default_factory=_Identity)


_PEEK = msgspec.json.Decoder(_Peek)


class Items(Generic[T]):
    """Known objects by namespace and name."""

    def __init__(self, watched: Watched[T], on_broken: OnBroken) -> None:
        self._watched = watched
        self._on_broken = on_broken
        self._known: dict[Key, T] = {}
        self._broken: dict[Key, str] = {}

    def replace(self, raws: Iterable[msgspec.Raw]) -> tuple[list[T], list[T]]:
        """Take a whole list; give what is new or changed in it, and what is gone.

        Raises:
            msgspec.DecodeError: an item has no readable metadata.
        """
        gone, self._known = self._known, {}
        reported, self._broken = self._broken, {}
        changed: list[T] = []
        for raw in raws:
            obj = self._decode(raw, gone, reported)
            if obj is None:
                continue
            key = (obj.metadata.namespace, obj.metadata.name)
            old = gone.get(key)
            self._known[key] = obj
            if old is not None and old.metadata.uid == obj.metadata.uid:
                del gone[key]
            if old is None or old.metadata.resource_version != obj.metadata.resource_version:
                changed.append(obj)
        return changed, list(gone.values())

    def take(self, raw: msgspec.Raw, *, deleted: bool) -> tuple[T | None, T | None, str]:
        """Take an object from a watch; give the one that is gone, the one that came or changed, and the version.

        Raises:
            msgspec.DecodeError: it has no readable metadata.
        """
        obj = None if deleted else self._decode(raw, self._known, self._broken)
        if obj is None:
            key, version = _identify(raw)
            if deleted:
                self._broken.pop(key, None)
            return self._known.pop(key, None), None, version
        key = (obj.metadata.namespace, obj.metadata.name)
        old = self._known.get(key)
        if obj is old:
            return None, None, self.version_of(raw)
        self._known[key] = obj
        anew = old is not None and old.metadata.uid != obj.metadata.uid
        return (old if anew else None), obj, obj.metadata.resource_version

    def version_of(self, raw: msgspec.Raw) -> str:
        """Read an object's version alone.

        Raises:
            msgspec.DecodeError: it has no readable metadata.
        """
        return _identify(raw)[1]

    def _decode(self, raw: msgspec.Raw, known: Mapping[Key, T], reported: Mapping[Key, str]) -> T | None:
        """Decode an object that matters; in place of a malformed one give what holds then."""
        try:
            obj = self._watched.decode(bytes(raw))
        except ObjectError as error:
            key, version = _identify(raw)
            if reported.get(key) != version:
                self._on_broken(error, bytes(raw))
            self._broken[key] = version
            return None if self._watched.malformed_is_gone else known.get(key)
        return obj if self._watched.keep(obj) else None

    def __len__(self) -> int:
        return len(self._known)


def _identify(raw: msgspec.Raw) -> tuple[Key, str]:
    identity = _PEEK.decode(raw).metadata
    return (identity.namespace, identity.name), identity.resource_version
