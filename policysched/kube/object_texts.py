"""Raw JSON of watched objects, which is stored only for HTTP extenders that get whole objects.

kube-scheduler sends the objects of its informers to extenders. These are the same objects, so a decision never waits
for the API server. Only objects that some extender receives are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final, Generic, TypeVar

import msgspec

from policysched.kube.object_cache import HasMetadata
from policysched.model.objects import Pod
from policysched.reading.lenient_json import UNREADABLE, shallow

T = TypeVar("T", bound=HasMetadata)
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
MANAGED: Final = "managedFields"
"""Metadata field that kube-scheduler sends for nodes and omits for pods."""
_TYPE: Final = frozenset(("apiVersion", "kind"))
_ENCODER: Final = msgspec.json.Encoder()


class WantedTexts(IntEnum):
    """Which objects of a kind need stored JSON, because extenders receive them: none, pending pods, or all."""

    NONE = 0
    PENDING = 1
    """Pods without a node."""
    ALL = 2


class KeptTexts(Generic[T]):
    """The raw JSON of objects of one kind.

    Args:
        identify: Returns the key of an object.
        left_out: Fields of the metadata that are not stored.
    """

    def __init__(self, identify: Callable[[T], str], *left_out: str) -> None:
        self._identify, self._left_out = identify, left_out
        self._wanted = WantedTexts.NONE
        self._kept: dict[str, tuple[T, bytes]] = {}
        self.incomplete = False
        """Whether JSON of newly selected objects is missing, until the next complete list."""

    def want(self, wanted: WantedTexts) -> None:
        """Select the objects whose JSON is stored; the JSON of newly selected objects is stored at the next list."""
        self.incomplete = self.incomplete or wanted > self._wanted
        self._wanted = wanted
        self._kept = {key: kept for key, kept in self._kept.items() if self._wants(kept[0])}

    def take(self, obj: T, raw: msgspec.Raw) -> None:
        """Store the newest JSON of an object."""
        if self._wants(obj):
            self._kept[self._identify(obj)] = obj, without(bytes(raw), *self._left_out)
        elif self._kept:
            self.drop(obj)

    def drop(self, obj: T) -> None:
        """Drop the JSON of a deleted object, unless an object with the same name has replaced the object."""
        kept = self._kept.get(identity := self._identify(obj))
        if kept is not None and kept[0].metadata.uid == obj.metadata.uid:
            del self._kept[identity]

    def lacks(self, obj: T) -> bool:
        """Return whether the JSON of an object is wanted but not stored."""
        return self._wants(obj) and self._identify(obj) not in self._kept

    def get(self, identity: str) -> bytes | None:
        """Return the JSON of an object, or None if the JSON is not stored."""
        kept = self._kept.get(identity)
        return None if kept is None else kept[1]

    def _wants(self, obj: T) -> bool:
        if self._wanted is WantedTexts.PENDING:
            return isinstance(obj, Pod) and not obj.spec.node_name
        return self._wanted is WantedTexts.ALL


def without(raw: bytes, *fields: str) -> bytes:
    """Remove apiVersion and kind, which Go omits for typed objects, and some metadata fields from an object's JSON."""
    try:
        members = _OBJECT.decode(raw)
        metadata = _OBJECT.decode(members.get("metadata", msgspec.Raw(b"{}")))
    except UNREADABLE:
        return shallow(raw)
    kept = {name: value for name, value in members.items() if name not in _TYPE}
    return _ENCODER.encode(
        {**kept, "metadata": {name: value for name, value in metadata.items() if name not in fields}}
    )
