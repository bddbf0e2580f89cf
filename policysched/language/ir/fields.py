"""The names of what an expression can read, with their types.

The table is the language's, not the cluster's: who fills the columns reads it here. Resources with a name of their
own are the same input whether they are written `node.free.cpu` or `node.free["cpu"]`, because a column has one unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from policysched.language.ir.types import BOOL, BYTES, CPU, DURATION, NUMBER, STRING, Gap, Shape, Type

Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its type, and whether it needs a key or is called with one."""

    type: Type
    keyed: bool = False
    called: bool = False


def _node(base: Type, gap: Gap = Gap.NONE) -> Type:
    return _shaped(base, Shape.NODES, gap)


def _shaped(base: Type, shape: Shape, gap: Gap = Gap.NONE) -> Type:
    return Type(base.kind, base.unit, shape, gap)


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


def _resources(root: str, group: str, shape: Shape) -> dict[Names, Field]:
    fields: dict[Names, Field] = {(root, group): Field(_shaped(NUMBER, shape), keyed=True)}
    for name, base in _RESOURCES.items():
        fields[root, group, name] = Field(_shaped(base, shape))
    return fields


def _pods(root: str, shape: Shape, maps: tuple[str, ...]) -> dict[Names, Field]:
    """Return what is read alike of the pod that is decided about and of pods that are placed."""
    text, maybe = _shaped(STRING, shape), _shaped(STRING, shape, Gap.INPUT)
    return {
        **{(root, name): Field(text) for name in ("name", "namespace", "qos", "service_account")},
        (root, "priority"): Field(_shaped(NUMBER, shape)),
        **{(root, name): Field(maybe, keyed=True) for name in maps},
        **{(root, name): Field(maybe) for name in ("priority_class", "owner_kind", "owner_name")},
        **_resources(root, "requests", shape),
        (root, "image_bytes"): Field(_shaped(BYTES, shape)),
    }


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
    ("node", "age"): Field(_node(DURATION)),
    **_pods("pod", Shape.SCALAR, ("labels", "annotations", "namespace_labels")),
    ("pod", "age"): Field(DURATION),
    ("cluster", "nodes"): Field(NUMBER),
    ("cluster", "pods"): Field(NUMBER),
    **_pods("peer", Shape.PODS, ("labels", "namespace_labels")),
}
# What is called with an expression over the pods of a node; `functions` has them.
TALLIED: Final[tuple[Names, ...]] = (("node", "pods", "count"), ("node", "pods", "any"), ("node", "pods", "sum"))
ROOTS: Final = frozenset({"node", "pod", "cluster", "peer", "metrics"})


def _groups() -> dict[Names, tuple[str, ...]]:
    children: dict[Names, dict[str, None]] = {}
    for names in (*FIELDS, *TALLIED):
        for size in range(1, len(names)):
            children.setdefault(names[:size], {})[names[size]] = None
    return {names: tuple(found) for names, found in children.items()}


# What may follow a name, for suggestions.
GROUPS: Final[Mapping[Names, tuple[str, ...]]] = _groups()
