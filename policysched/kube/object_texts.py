"""Objects as the API server wrote them, for extenders: they read fields that nothing here reads.

A pod is asked for when it is needed, which costs one request beside the one to the extender. The nodes are kept as
they are watched, while some extender needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from policysched.framework import ApiError
from policysched.framework.extender import ExtenderError
from policysched.kube.listing import read_list
from policysched.kube.object_cache import identify
from policysched.kube.transport import Transport
from policysched.model.kinds import NODES
from policysched.model.lenient_json import shallow
from policysched.model.objects import Pod

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
MANAGED: Final = "managedFields"
"""Who wrote which field; kube-scheduler keeps it of nodes, and not of pods."""
_TYPE: Final = frozenset(("apiVersion", "kind"))
_ENCODER: Final = msgspec.json.Encoder()


class NodeTexts:
    """The nodes as JSON, by name."""

    def __init__(self) -> None:
        self.wanted = False
        """Whether anybody needs them; else none is kept."""
        self._texts: dict[str, bytes] = {}

    def take(self, name: str, raw: bytes) -> None:
        """Take a node as it is now."""
        if self.wanted:
            self._texts[name] = without(raw)

    def drop(self, name: str) -> None:
        """Forget a node that is gone."""
        self._texts.pop(name, None)

    def __getitem__(self, name: str) -> bytes:
        return self._texts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._texts


class WatchedTexts:
    """Pods and nodes as JSON.

    Args:
        transport: How pods are asked for.
        nodes: The nodes that are kept.
    """

    def __init__(self, transport: Transport, nodes: NodeTexts) -> None:
        self._transport, self._nodes = transport, nodes

    async def pod(self, pod: Pod) -> bytes:
        """Return a pod.

        Raises:
            ExtenderError: it cannot be had, or is another one of its name by now.
        """
        of = pod.metadata
        try:
            answer = await self._transport.request("GET", f"/api/v1/namespaces/{of.namespace}/pods/{of.name}")
        except ApiError as error:
            raise ExtenderError(f"pod {pod.key} cannot be read for an extender: {error}") from error
        text = without(answer, MANAGED)
        if _uid(text) != of.uid:
            raise ExtenderError(f"pod {pod.key} cannot be read for an extender: it was made anew")
        return text

    async def nodes(self, names: Sequence[str]) -> list[bytes]:
        """Return nodes; where some are not kept yet, all are listed once.

        Raises:
            ExtenderError: one cannot be had.
        """
        if not all(name in self._nodes for name in names):
            await self._list()
        try:
            return [self._nodes[name] for name in names]
        except KeyError as error:
            raise ExtenderError(f"node {error.args[0]} cannot be read for an extender") from error

    async def _list(self) -> None:
        self._nodes.wanted = True
        try:
            _, raws = await read_list(self._transport, NODES.path, NODES.kind)
        except ApiError as error:
            raise ExtenderError(f"nodes cannot be read for an extender: {error}") from error
        for raw in raws:
            name = identify(raw)[0][1]
            if name not in self._nodes:
                self._nodes.take(name, bytes(raw))


def without(raw: bytes, *fields: str) -> bytes:
    """Leave out the type, which a typed object of Go does not say, and some fields of the metadata."""
    try:
        members = _OBJECT.decode(raw)
        metadata = _OBJECT.decode(members.get("metadata", msgspec.Raw(b"{}")))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return shallow(raw)
    kept = {name: value for name, value in members.items() if name not in _TYPE}
    return _ENCODER.encode(
        {**kept, "metadata": {name: value for name, value in metadata.items() if name not in fields}}
    )


class _Uid(msgspec.Struct):
    uid: str = ""


class _Identified(msgspec.Struct):
    metadata: _Uid = msgspec.field(default_factory=_Uid)


def _uid(text: bytes) -> str:
    try:
        return msgspec.json.decode(text, type=_Identified).metadata.uid
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
