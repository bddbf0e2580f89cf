"""Raw JSON of watched objects, kept only for HTTP extenders.

They are kept as they are watched, and only those of which some extender is told: a decision never waits for the API
server. kube-scheduler sends the objects of its informers, which are these.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final, Generic, TypeVar

import msgspec

from policysched.kube.object_cache import HasMetadata
from policysched.model.lenient_json import UNREADABLE, shallow
from policysched.model.objects import Pod

T = TypeVar("T", bound=HasMetadata)
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
MANAGED: Final = "managedFields"
"""Who wrote which field; kube-scheduler keeps it of nodes, and not of pods."""
_TYPE: Final = frozenset(("apiVersion", "kind"))
_ENCODER: Final = msgspec.json.Encoder()


class WantedTexts(IntEnum):
    """Which objects of a kind extenders are told of."""

    NONE = 0
    PENDING = 1
    """Pods without a node."""
    ALL = 2


class KeptTexts(Generic[T]):
    """The objects of one kind as JSON.

    Args:
        identify: Gives what tells an object from others of its kind.
        left_out: Fields of the metadata that are not kept.
    """

    def __init__(self, identify: Callable[[T], str], *left_out: str) -> None:
        self._identify, self._left_out = identify, left_out
        self._wanted = WantedTexts.NONE
        self._kept: dict[str, tuple[T, bytes]] = {}
        self.incomplete = False
        """Whether more is wanted since the last whole list."""

    def want(self, wanted: WantedTexts) -> None:
        """Keep these from now on; what is there already and was not wanted before is missing until it is listed."""
        self.incomplete = self.incomplete or wanted > self._wanted
        self._wanted = wanted
        self._kept = {key: kept for key, kept in self._kept.items() if self._wants(kept[0])}

    def take(self, obj: T, raw: msgspec.Raw) -> None:
        """Take an object as it is now."""
        if self._wants(obj):
            self._kept[self._identify(obj)] = obj, without(bytes(raw), *self._left_out)
        elif self._kept:
            self.drop(obj)

    def drop(self, obj: T) -> None:
        """Forget an object that is gone; one that was made anew under its name stays."""
        kept = self._kept.get(identity := self._identify(obj))
        if kept is not None and kept[0].metadata.uid == obj.metadata.uid:
            del self._kept[identity]

    def lacks(self, obj: T) -> bool:
        """Return whether an object is wanted and not kept."""
        return self._wants(obj) and self._identify(obj) not in self._kept

    def get(self, identity: str) -> bytes | None:
        """Return an object as JSON, None where it is gone."""
        kept = self._kept.get(identity)
        return None if kept is None else kept[1]

    def _wants(self, obj: T) -> bool:
        if self._wanted is WantedTexts.PENDING:
            return isinstance(obj, Pod) and not obj.spec.node_name
        return self._wanted is WantedTexts.ALL


def without(raw: bytes, *fields: str) -> bytes:
    """Leave out the type, which a typed object of Go does not say, and some fields of the metadata."""
    try:
        members = _OBJECT.decode(raw)
        metadata = _OBJECT.decode(members.get("metadata", msgspec.Raw(b"{}")))
    except UNREADABLE:
        return shallow(raw)
    kept = {name: value for name, value in members.items() if name not in _TYPE}
    return _ENCODER.encode(
        {**kept, "metadata": {name: value for name, value in metadata.items() if name not in fields}}
    )
