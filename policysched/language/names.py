"""The names of what an expression can read, with their types.

The table is the language's, not the cluster's: who fills the columns reads it here. Resources with a name of their
own are the same input whether they are written `node.free.cpu` or `node.free["cpu"]`, because a column has one unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from policysched.language.types import BOOL, BYTES, CPU, NUMBER, STRING, Gap, Shape, Type

Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its type, and whether it needs a key or is called with one."""

    type: Type
    keyed: bool = False
    called: bool = False


def _node(base: Type, gap: Gap = Gap.NONE) -> Type:
    return Type(base.kind, base.unit, Shape.NODES, gap)


_RESOURCES: Final[Mapping[str, Type]] = {
    "cpu": CPU,
    "memory": BYTES,
    "ephemeral_storage": BYTES,
    "pods": NUMBER,
}
RESOURCE_NAMES: Final[Mapping[str, str]] = {
    "cpu": "cpu",
    "memory": "memory",
    "ephemeral-storage": "ephemeral_storage",
    "pods": "pods",
}
_OPTIONAL: Final = STRING.filled(Gap.INPUT)


def _resources(root: str, group: str, shape: Shape) -> dict[Names, Field]:
    fields: dict[Names, Field] = {(root, group): Field(Type(NUMBER.kind, NUMBER.unit, shape), keyed=True)}
    for name, base in _RESOURCES.items():
        fields[root, group, name] = Field(Type(base.kind, base.unit, shape))
    return fields


FIELDS: Final[Mapping[Names, Field]] = {
    ("node", "name"): Field(_node(STRING)),
    **{("node", name): Field(_node(STRING, Gap.INPUT)) for name in ("arch", "os", "zone", "region", "instance_type")},
    ("node", "labels"): Field(_node(STRING, Gap.INPUT), keyed=True),
    ("node", "annotations"): Field(_node(STRING, Gap.INPUT), keyed=True),
    ("node", "ready"): Field(_node(BOOL)),
    ("node", "cordoned"): Field(_node(BOOL)),
    ("node", "taints", "has"): Field(_node(BOOL), called=True),
    **_resources("node", "allocatable", Shape.NODES),
    **_resources("node", "requested", Shape.NODES),
    **_resources("node", "free", Shape.NODES),
    ("node", "cached_image_bytes"): Field(_node(BYTES)),
    **{("pod", name): Field(STRING) for name in ("name", "namespace", "qos", "service_account")},
    ("pod", "priority"): Field(NUMBER),
    **{("pod", name): Field(_OPTIONAL, keyed=True) for name in ("labels", "annotations", "namespace_labels")},
    **{("pod", name): Field(_OPTIONAL) for name in ("priority_class", "owner_kind", "owner_name")},
    **_resources("pod", "requests", Shape.SCALAR),
    ("pod", "image_bytes"): Field(BYTES),
    ("cluster", "nodes"): Field(NUMBER),
    ("cluster", "pods"): Field(NUMBER),
}
# These parse, and are answered with E0209.
LATER: Final = frozenset({("node", "age"), ("pod", "age"), ("node", "pods")})
ROOTS: Final = frozenset({"node", "pod", "cluster", "peer", "metrics"})


def _groups() -> dict[Names, tuple[str, ...]]:
    children: dict[Names, dict[str, None]] = {}
    for names in (*FIELDS, *LATER):
        for size in range(1, len(names)):
            children.setdefault(names[:size], {})[names[size]] = None
    return {names: tuple(found) for names, found in children.items()}


# What may follow a name, for suggestions.
GROUPS: Final[Mapping[Names, tuple[str, ...]]] = _groups()
