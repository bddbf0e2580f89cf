"""Types of expressions (kind, unit, shape, whether a value can be missing), and the table of typed fields.

A type also has the reason for which a value can be missing: a value that is missing only because of a division by zero,
or a score without `else`, is not worth a warning. The table of fields belongs to the language, not to the cluster; code
that fills columns reads it here. Resources with their own name are one input in both notations, `node.free.cpu` and
`node.free["cpu"]`, because a column has one unit.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, TypeAlias


class Kind(enum.Enum):
    """The kind of a value: condition, quantity, string, version or list."""

    BOOL = "condition"
    STRING = "string"
    VERSION = "version"
    QUANTITY = "quantity"
    LIST = "list"


class Unit(enum.Enum):
    """The unit of a quantity, which is stored in millicores, bytes, seconds or as a plain number."""

    NUMBER = "number"
    CPU = "cpu"
    BYTES = "bytes"
    DURATION = "duration"


class Shape(enum.IntEnum):
    """The number of values of an expression: one for all nodes, one per node, or one per placed pod."""

    SCALAR = 0
    NODES = 1
    PODS = 2


class Gap(enum.IntEnum):
    """Why a value can be missing: never, because of the operation itself, or because of an input."""

    NONE = 0
    OWN = 1
    INPUT = 2


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an expression: kind, unit, shape, and whether its value can be missing.

    Attributes:
        kind: Kind of the value.
        unit: Unit of a quantity, or of a list's items.
        shape: One value, one per node, or one per placed pod.
        gap: Whether and why it can be missing (for a condition: unknown).
    """

    kind: Kind
    unit: Unit | None = None
    shape: Shape = Shape.SCALAR
    gap: Gap = Gap.NONE

    @property
    def optional(self) -> bool:
        """Whether a value of the type can be missing."""
        return self.gap is not Gap.NONE

    @property
    def is_number(self) -> bool:
        """Whether the type is a quantity without a unit."""
        return self.unit is Unit.NUMBER and self.kind is Kind.QUANTITY

    def like(self, other: Type) -> bool:
        """Return whether values of both types can be compared for equality."""
        return self.kind is other.kind and self.unit is other.unit

    def over(self, *others: Type) -> Type:
        """Return this type for a value computed from values of other types: the largest shape and gap of all types."""
        shape = max(self.shape, *(other.shape for other in others))
        return replace(self, shape=shape, gap=max(self.gap, *(other.gap for other in others)))

    def filled(self, gap: Gap = Gap.NONE) -> Type:
        """Return a copy of this type with a given gap, which states whether and why a value can be missing."""
        return replace(self, gap=gap)

    def at_least(self, gap: Gap) -> Type:
        """Return a copy of this type with a given gap (why a value can be missing), unless its own gap is larger."""
        return replace(self, gap=max(self.gap, gap))

    def __str__(self) -> str:
        if self.kind is Kind.QUANTITY and self.unit is not None:
            return self.unit.value
        return self.kind.value

    @property
    def item(self) -> str:
        """The name of a list's items in messages."""
        return _ITEMS[self.unit]


_ITEMS = {None: "strings", Unit.NUMBER: "numbers", Unit.CPU: "cpu", Unit.BYTES: "bytes", Unit.DURATION: "durations"}
BOOL = Type(Kind.BOOL)
STRING = Type(Kind.STRING)
VERSION = Type(Kind.VERSION)
NUMBER = Type(Kind.QUANTITY, Unit.NUMBER)
CPU = Type(Kind.QUANTITY, Unit.CPU)
BYTES = Type(Kind.QUANTITY, Unit.BYTES)
DURATION = Type(Kind.QUANTITY, Unit.DURATION)

# Factors of literals' suffixes: to seconds; to bytes, cores or plain numbers.
_DECIMAL: Final[Mapping[str, Decimal]] = {
    suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)
}
_BINARY: Final[Mapping[str, Decimal]] = {
    suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)
}
SECONDS: Final[Mapping[str, Decimal]] = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
FACTORS: Final[Mapping[str, Decimal]] = {
    "": Decimal(1), "%": Decimal("0.01"), "m": Decimal("0.001"), **_DECIMAL, **_BINARY,
}  # fmt: skip


def quantity(unit: Unit) -> Type:
    """Return the type of a quantity in a unit, with one value for all nodes."""
    return Type(Kind.QUANTITY, unit)


def list_of(item: Type) -> Type:
    """Return the type of a list whose items have the given type."""
    return Type(Kind.LIST, item.unit)


Names: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InputField:
    """A field that expressions can read: type, description, and whether it needs a key.

    Attributes:
        type: Its type.
        help: Its value, as in the reference.
        keyed: Whether it needs a key in brackets.
        called: Whether it is called with a key, like a function.
    """

    type: Type
    help: str = ""
    keyed: bool = False
    called: bool = False


def _shaped(base: Type, shape: Shape, gap: Gap = Gap.NONE) -> Type:
    return Type(base.kind, base.unit, shape, gap)


def _node(base: Type, gap: Gap = Gap.NONE) -> Type:
    return _shaped(base, Shape.NODES, gap)


_STRINGS: Final = Type(Kind.LIST)
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


_AMOUNTS: Final[Mapping[str, str]] = {
    "allocatable": "allocatable {}",
    "requested": "{} that the pods on the node request",
    "free": "allocatable {} minus requested {}; may be negative",
    "requests": "{} that the pod requests",
    "limits": "{} that the pod may use at most; missing if no container has such a limit",
    "members": "{} that the members without a node request together",
}


def _resources(root: str, group: str, shape: Shape, of: str = "") -> dict[Names, InputField]:
    """Return the fields of a group of amounts, such as `node.free`; `of` is the key of their descriptions."""
    of = of or group
    amount = _AMOUNTS[of]
    other = amount.replace("{}", "amount of resource `k`", 1).replace(" {}", " amount")
    gap = Gap.INPUT if group == "limits" else Gap.NONE
    fields: dict[Names, InputField] = {(root, group): InputField(_shaped(NUMBER, shape, gap), other, keyed=True)}
    for name, base in _RESOURCES.items():
        text = amount.replace("{}", name.replace("_", " "))
        if name == "pods":
            text = _PODS[of]
        if text:
            fields[root, group, name] = InputField(_shaped(base, shape, gap), text)
    return fields


_PODS: Final[Mapping[str, str]] = {
    "allocatable": "number of pods that the node can run",
    "requested": "number of pods on the node",
    "free": "number of pods that the node can still run; may be negative",
    "requests": "always 1",
    "limits": "",
    "members": "number of members without a node",
}
_OF_PODS: Final[Mapping[str, str]] = {
    "name": "name",
    "namespace": "namespace",
    "service_account": "name of the service account",
    "qos": 'QoS class: "Guaranteed", "Burstable" or "BestEffort"',
    "labels": "label `k`",
    "annotations": "annotation `k`",
    "namespace_labels": "label `k` of the namespace",
    "priority_class": "name of the PriorityClass",
    "owner_kind": "kind of the controller, as in `ReplicaSet`",
    "owner_name": "name of the controller",
}
WELL_KNOWN_LABELS: Final[Mapping[str, str]] = {
    "arch": "kubernetes.io/arch",
    "os": "kubernetes.io/os",
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
    "instance_type": "node.kubernetes.io/instance-type",
}
"""The label keys by the field of `node` that reads the label, such as `zone`."""
NODE_INFO: Final[Mapping[str, str]] = {
    "kubelet_version": "version of the kubelet, as in `v1.37.2`",
    "kernel_version": "version of the kernel, as in `6.8.0-45-generic`, which is older than 6.8.0: compare it "
    'with `version("6.8-0")`',
    "container_runtime": "name of the container runtime, as in `containerd`",
    "container_runtime_version": "version of the container runtime, as in `2.1.4`",
    "os_image": "name of the operating system, as in `Ubuntu 24.04.3 LTS`",
}
"""The descriptions of the fields of `node` that read `status.nodeInfo`, by field name."""
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
STATUSES: Final = ("True", "False", "Unknown")
CHOICES: Final[Mapping[Names, tuple[str, ...]]] = {
    ("node", "taints", "effect"): EFFECTS,
    ("node", "taints", "has_effect"): EFFECTS,
    ("node", "conditions"): STATUSES,
    ("pod", "tolerations", "effect"): ("", *EFFECTS),
    **dict.fromkeys((("peer", "phase"), ("victim", "phase")), ("Pending", "Running", "Unknown")),
    **dict.fromkeys((("pod", "qos"), ("peer", "qos")), ("Guaranteed", "Burstable", "BestEffort")),
}
"""The possible strings of fields with few values, and of the keys of `has_effect`."""
_PRIORITY: Final = "priority; 0 if the pod has none"
_SINCE: Final = "time since creation, in steps of 10 s"


def _pods(root: str, shape: Shape, maps: tuple[str, ...]) -> dict[Names, InputField]:
    """Return the fields that pending pods and placed pods have in common."""
    text, maybe = _shaped(STRING, shape), _shaped(STRING, shape, Gap.INPUT)
    return {
        **{(root, name): InputField(text, _OF_PODS[name]) for name in ("name", "namespace", "qos", "service_account")},
        (root, "priority"): InputField(_shaped(NUMBER, shape), _PRIORITY),
        **{(root, name): InputField(maybe, _OF_PODS[name], keyed=True) for name in maps},
        **{(root, name): InputField(maybe, _OF_PODS[name]) for name in ("priority_class", "owner_kind", "owner_name")},
        **_resources(root, "requests", shape),
        (root, "image_bytes"): InputField(
            _shaped(BYTES, shape), "total size of the pod's images, as far as a node reports it"
        ),
    }


GROUP_CONSTANTS: Final = frozenset({"name", "labels", "min_count"})
"""The fields of a pod group that do not change with its pods or their placement, for `appliesTo` and `when`."""


def _pod_group(root: Names, shape: Shape) -> dict[Names, InputField]:
    """Return the fields of the pod group of a pod."""
    text, number = _shaped(STRING, shape, Gap.INPUT), _shaped(NUMBER, shape)
    return {
        (*root, "name"): InputField(text, "name of the pod's PodGroup; missing for a pod without a group"),
        (*root, "labels"): InputField(text, "label `k` of the PodGroup", keyed=True),
        (*root, "min_count"): InputField(
            number.filled(Gap.INPUT), "`minCount` of a gang; missing for a basic group and for a pod without a group"
        ),
        (*root, "size"): InputField(
            number, "number of known members, with or without a node; 0 for a pod without a group"
        ),
        (*root, "placed"): InputField(number, "number of members with a node, also those that just got it"),
    }


FIELDS: Final[Mapping[Names, InputField]] = {
    ("node", "name"): InputField(_node(STRING), "name"),
    **{
        ("node", name): InputField(_node(STRING, Gap.INPUT), f"label `{key}`")
        for name, key in WELL_KNOWN_LABELS.items()
    },
    ("node", "labels"): InputField(_node(STRING, Gap.INPUT), "label `k`", keyed=True),
    ("node", "annotations"): InputField(_node(STRING, Gap.INPUT), "annotation `k`", keyed=True),
    ("node", "ready"): InputField(_node(BOOL), "true if the node's condition `Ready` is true"),
    ("node", "cordoned"): InputField(_node(BOOL), "true if the node is cordoned (`spec.unschedulable`)"),
    ("node", "conditions"): InputField(
        _node(STRING, Gap.INPUT), 'status of the condition `k`: "True", "False" or "Unknown"', keyed=True
    ),
    ("node", "taints", "has"): InputField(_node(BOOL), "true if the node has a taint with key `k`", called=True),
    ("node", "taints", "has_effect"): InputField(
        _node(BOOL), "true if the node has a taint with effect `k`, as in `NoSchedule`", called=True
    ),
    ("node", "taints", "value"): InputField(
        _node(STRING, Gap.INPUT), "value of the taint with key `k`; of several, of the strongest effect", called=True
    ),
    ("node", "taints", "effect"): InputField(
        _node(STRING, Gap.INPUT), "effect of the taint with key `k`; of several, the strongest effect", called=True
    ),
    **{("node", name): InputField(_node(STRING, Gap.INPUT), text) for name, text in NODE_INFO.items()},
    ("node", "addresses"): InputField(
        _node(STRING, Gap.INPUT), "first address of type `k`, as in `InternalIP`", keyed=True
    ),
    **_resources("node", "allocatable", Shape.NODES),
    **_resources("node", "requested", Shape.NODES),
    **_resources("node", "free", Shape.NODES),
    ("node", "cached_image_bytes"): InputField(_node(BYTES), "size of the pod's images that are on the node"),
    ("node", "group_members"): InputField(
        _node(NUMBER), "number of members of the pod's group on the node; 0 for a pod without a group"
    ),
    ("node", "age"): InputField(_node(DURATION), _SINCE),
    **_pods("pod", Shape.SCALAR, ("labels", "annotations", "namespace_labels")),
    ("pod", "age"): InputField(DURATION, _SINCE),
    **_resources("pod", "limits", Shape.SCALAR),
    ("pod", "containers"): InputField(NUMBER, "number of containers, without init containers"),
    ("pod", "images"): InputField(
        _STRINGS, "images of all containers and image volumes; an image without tag and digest has the tag `latest`"
    ),
    ("pod", "claims"): InputField(_STRINGS, "names of the PersistentVolumeClaims, also of ephemeral volumes"),
    ("pod", "storage_classes"): InputField(_STRINGS, "StorageClasses of these claims"),
    ("pod", "tolerations", "has"): InputField(BOOL, "true if the pod has a toleration with key `k`", called=True),
    ("pod", "tolerations", "value"): InputField(
        STRING.filled(Gap.INPUT), "value of the first toleration with key `k`", called=True
    ),
    ("pod", "tolerations", "effect"): InputField(
        STRING.filled(Gap.INPUT), 'effect of the first toleration with key `k`; "" for all effects', called=True
    ),
    **_pod_group(("group",), Shape.SCALAR),
    **_resources("group", "requests", Shape.SCALAR, of="members"),
    ("cluster", "nodes"): InputField(NUMBER, "number of nodes"),
    ("cluster", "pods"): InputField(NUMBER, "number of placed pods"),
    ("placement", "name"): InputField(STRING, "name: the value of the topology key; empty without a key"),
    ("placement", "size"): InputField(NUMBER, "number of its nodes"),
    **_pods("peer", Shape.PODS, ("labels", "annotations", "namespace_labels")),
    **{("victim", name): InputField(_shaped(STRING, Shape.PODS), _OF_PODS[name]) for name in ("name", "namespace")},
    **{
        ("victim", name): InputField(_shaped(STRING, Shape.PODS, Gap.INPUT), _OF_PODS[name], keyed=True)
        for name in ("labels", "annotations")
    },
    ("victim", "priority"): InputField(_shaped(NUMBER, Shape.PODS), _PRIORITY),
    **{
        (root, "age"): InputField(
            _shaped(DURATION, Shape.PODS, Gap.OWN), f"{_SINCE}; missing only if a file states no creation time"
        )
        for root in ("peer", "victim")
    },
    **{
        (root, "phase"): InputField(_shaped(STRING, Shape.PODS), 'phase: "Pending", "Running" or "Unknown"')
        for root in ("peer", "victim")
    },
    **{
        ("victim", name): InputField(_shaped(STRING, Shape.PODS, Gap.INPUT), _OF_PODS[name])
        for name in ("owner_kind", "owner_name")
    },
    **_pod_group(("victim", "group"), Shape.PODS),
}
# Functions over the pods of a node.
POD_FUNCTIONS: Final[tuple[Names, ...]] = tuple(
    ("node", "pods", name) for name in ("count", "any", "all", "sum", "min", "max")
)
PLACEMENT_FUNCTIONS: Final[tuple[Names, ...]] = tuple(
    ("placement", "nodes", name) for name in ("count", "any", "all", "sum", "avg", "min", "max")
)
"""The functions of the language over the nodes of a candidate placement of a pod group."""
METHODS: Final = (*POD_FUNCTIONS, *PLACEMENT_FUNCTIONS)
ROOTS: Final = frozenset({"node", "pod", "group", "placement", "cluster", "peer", "victim", "metrics"})


def _groups() -> dict[Names, tuple[str, ...]]:
    children: dict[Names, dict[str, None]] = {}
    for names in (*FIELDS, *METHODS):
        for size in range(1, len(names)):
            children.setdefault(names[:size], {})[names[size]] = None
    return {names: tuple(found) for names, found in children.items()}


# Names that can follow a name, for suggestions.
GROUPS: Final[Mapping[Names, tuple[str, ...]]] = _groups()
