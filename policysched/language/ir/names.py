"""Fields of nodes and pods that expressions can read, with their types; and what the policy around a text defines.

The table is the language's, not the cluster's: who fills the columns reads it here. Resources with a name of their
own are the same input whether they are written `node.free.cpu` or `node.free["cpu"]`, because a column has one unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from policysched.language.ir.graph import Typed
from policysched.language.ir.types import BOOL, BYTES, CPU, DURATION, NUMBER, STRING, Gap, Shape, Type, Unit

Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InputField:
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


def _resources(root: str, group: str, shape: Shape) -> dict[Names, InputField]:
    fields: dict[Names, InputField] = {(root, group): InputField(_shaped(NUMBER, shape), keyed=True)}
    for name, base in _RESOURCES.items():
        fields[root, group, name] = InputField(_shaped(base, shape))
    return fields


def _pods(root: str, shape: Shape, maps: tuple[str, ...]) -> dict[Names, InputField]:
    """Return what is read alike of the pod that is decided about and of pods that are placed."""
    text, maybe = _shaped(STRING, shape), _shaped(STRING, shape, Gap.INPUT)
    return {
        **{(root, name): InputField(text) for name in ("name", "namespace", "qos", "service_account")},
        (root, "priority"): InputField(_shaped(NUMBER, shape)),
        **{(root, name): InputField(maybe, keyed=True) for name in maps},
        **{(root, name): InputField(maybe) for name in ("priority_class", "owner_kind", "owner_name")},
        **_resources(root, "requests", shape),
        (root, "image_bytes"): InputField(_shaped(BYTES, shape)),
    }


FIELDS: Final[Mapping[Names, InputField]] = {
    ("node", "name"): InputField(_node(STRING)),
    **{
        ("node", name): InputField(_node(STRING, Gap.INPUT))
        for name in ("arch", "os", "zone", "region", "instance_type")
    },
    ("node", "labels"): InputField(_node(STRING, Gap.INPUT), keyed=True),
    ("node", "annotations"): InputField(_node(STRING, Gap.INPUT), keyed=True),
    ("node", "ready"): InputField(_node(BOOL)),
    ("node", "cordoned"): InputField(_node(BOOL)),
    ("node", "taints", "has"): InputField(_node(BOOL), called=True),
    **_resources("node", "allocatable", Shape.NODES),
    **_resources("node", "requested", Shape.NODES),
    **_resources("node", "free", Shape.NODES),
    ("node", "cached_image_bytes"): InputField(_node(BYTES)),
    ("node", "age"): InputField(_node(DURATION)),
    **_pods("pod", Shape.SCALAR, ("labels", "annotations", "namespace_labels")),
    ("pod", "age"): InputField(DURATION),
    ("cluster", "nodes"): InputField(NUMBER),
    ("cluster", "pods"): InputField(NUMBER),
    **_pods("peer", Shape.PODS, ("labels", "namespace_labels")),
}
# What is called with an expression over the pods of a node: functions.
POD_FUNCTIONS: Final[tuple[Names, ...]] = (("node", "pods", "count"), ("node", "pods", "any"), ("node", "pods", "sum"))
ROOTS: Final = frozenset({"node", "pod", "cluster", "peer", "metrics"})


def _groups() -> dict[Names, tuple[str, ...]]:
    children: dict[Names, dict[str, None]] = {}
    for names in (*FIELDS, *POD_FUNCTIONS):
        for size in range(1, len(names)):
            children.setdefault(names[:size], {})[names[size]] = None
    return {names: tuple(found) for names, found in children.items()}


# What may follow a name, for suggestions.
GROUPS: Final[Mapping[Names, tuple[str, ...]]] = _groups()

Phase: TypeAlias = Literal["pod", "filter", "score", "let"]
"""Where a text stands: it decides which fields can be read, not what an expression means."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What stands around a text.

    Attributes:
        phase: `pod` for `appliesTo` and `when`, else the kind of text.
        lets: The names that are defined, in order; None where the definition has an error of its own.
        later: Names that are defined further down.
        metrics: The declared metrics and their units.
        normalized: Whether the score is normalised after its value, so that constants may have any size.
    """

    phase: Phase = "filter"
    lets: Mapping[str, Typed | None] = field(default_factory=dict)
    later: frozenset[str] = frozenset()
    metrics: Mapping[str, Unit] = field(default_factory=dict)
    normalized: bool = False
    used: set[str] = field(default_factory=set, compare=False)
    """The `let` names that texts used, shared by all environments that are made of this one."""
