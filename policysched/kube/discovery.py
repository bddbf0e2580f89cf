"""What a server says that it serves, asked where a path was not found.

One 404 is no proof that a kind is not installed: a gateway answers so for a server that is not ready. Whether the lists
of all groups and of a group's kinds leave the kind out tells.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from policysched.framework import ApiError
from policysched.kube.transport import Transport

T = TypeVar("T")


class _Version(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct):
    versions: list[_Version]


class _Groups(msgspec.Struct, tag_field="kind", tag="APIGroupList"):
    groups: list[_Group]


class _Resource(msgspec.Struct):
    name: str


class _Resources(msgspec.Struct, tag_field="kind", tag="APIResourceList"):
    resources: list[_Resource]


async def is_served(transport: Transport, path: str) -> bool:
    """Tell whether a server says that it serves a path like `/apis/GROUP/VERSION/PLURAL`.

    Raises:
        ApiError: it does not say.
        ConnectionProblemError: the credentials expired and cannot be renewed.
    """
    root, _, plural = path.rpartition("/")
    groups = await _read(transport, "/apis", _Groups)
    if root not in {f"/apis/{version.group_version}" for group in groups.groups for version in group.versions}:
        return False
    return any(one.name == plural for one in (await _read(transport, root, _Resources)).resources)


async def _read(transport: Transport, path: str, shape: type[T]) -> T:
    answer = await transport.request("GET", path)
    try:
        return msgspec.json.decode(answer, type=shape)
    except msgspec.MsgspecError as error:
        raise ApiError(0, "Malformed", f"the answer for {path} does not say what is served: {error}") from error
