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
            self._texts[name] = without_managed_fields(raw)

    def drop(self, name: str) -> None:
        """Forget a node that is gone."""
        self._texts.pop(name, None)

    def __getitem__(self, name: str) -> bytes:
        return self._texts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._texts


class WatchedTexts:
    """Pods and nodes as JSON, without `managedFields` as kube-scheduler's are.

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
        text = without_managed_fields(answer)
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


def without_managed_fields(raw: bytes) -> bytes:
    """Leave out who wrote which field, which is half of an object, and what a typed object of Go has not."""
    try:
        members = _OBJECT.decode(raw)
        metadata = _OBJECT.decode(members.get("metadata", msgspec.Raw(b"{}")))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return shallow(raw)
    metadata.pop("managedFields", None)
    for name in ("apiVersion", "kind"):
        members.pop(name, None)
    return _ENCODER.encode({**members, "metadata": metadata})


class _Uid(msgspec.Struct):
    uid: str = ""


class _Identified(msgspec.Struct):
    metadata: _Uid = msgspec.field(default_factory=_Uid)


def _uid(text: bytes) -> str:
    try:
        return msgspec.json.decode(text, type=_Identified).metadata.uid
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
