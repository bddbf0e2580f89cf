"""The reference of names and functions: the fields that expressions can read, and the functions that they can call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from policysched.language import FIELDS, Gap
from policysched.language.functions.lists import LISTS
from policysched.language.functions.placements import OVER_PLACEMENT
from policysched.language.functions.signatures import Function
from policysched.language.functions.strings import STRINGS
from policysched.language.functions.times import TIMES
from policysched.language.functions.values import OVER_NODES, OVER_PODS, VALUES
from policysched.language.ir.graph import AGGREGATES
from policysched.language.ir.types import InputField, Names
from tools.reference.tables import table

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "functions.md"
HEAD: Final = """---
description: Every field that a policy expression can read and every function that it can call, with types and examples.
---

# Names and functions

Look up the fields and functions of policy expressions. Operators, types and limits are in the
[language reference](language.md); [Write a policy](../write/language.md) is the guide.
"""
NAMES: Final = """## Names

In the tables, `k` is any key, as in `node.labels["example.com/rack"]`. "May be missing" means that some nodes
or pods have no such value; see [missing values](language.md#missing-values). A resource that a node or a pod does not
name is 0. Besides the fields, an expression can read the names that `let` defines, and metrics.
"""
ROOTS: Final[Mapping[str, str]] = {
    "node": """### node

The candidate node. Requested amounts include pods that were just scheduled and pods that are being deleted, but not
finished pods.
""",
    "pod": """### pod

The pod that is scheduled.
""",
    "group": """### group

The PodGroup that the pod names in `spec.schedulingGroup`. Without the feature gate `GenericWorkload`, no pod has a
group. Members that got a node in the current cycle of the group are placed. `appliesTo` and `when` read only the name,
the labels and `min_count`.
""",
    "placement": """### placement

A set of nodes that is tried for all pods of a group. Use `placement` only in the rules of
[`spec.placement`](language.md#placements).
""",
    "cluster": """### cluster

Counts of the whole cluster.
""",
    "peer": """### peer

A pod that is placed on the node. Use `peer` only inside the [functions over the pods of a
node](#functions-over-the-pods-of-a-node).
""",
    "victim": """### victim

A placed pod of lower priority that preemption would evict. Use `victim` only in `spec.preemption.require`.
""",
}
"""The introduction of each table of names, by the first part of the names."""
METRICS: Final = """### metrics

| name | type | may be missing | value |
|---|---|---|---|
| `metrics.NAME` | the unit of the metric | yes | value of the metric `NAME` of `spec.metrics` for the node |
"""
GROUPS: Final[tuple[tuple[str, Mapping[str, Function]], ...]] = (
    (
        """### Values

`x`, `a` and `b` are values, `c` is a condition.
""",
        VALUES,
    ),
    (
        """### Strings

`number` accepts digits with at most one point and one leading `-`, without spaces. The separator of `split` and the
patterns of `glob` must be the same for every node. [Versions](language.md#versions) have the order of Semantic
Versioning.
""",
        STRINGS,
    ),
    (
        """### Lists

A list is written `[...]`, or is `split(...)` or a field of type list. `c` and `x` are evaluated for each item, which is
named `item` there; they cannot read nodes or placed pods.
""",
        LISTS,
    ),
    (
        """### Time

Times and time zones are constants. The default time zone is UTC. The time is read once per scheduling decision.
""",
        TIMES,
    ),
    (
        """### Aggregates over nodes

Aggregates read all nodes, including cordoned and tainted nodes and nodes that a filter rejects. They skip nodes where
`x` is missing. With `by`, each node gets the result of its domain: the nodes with the same value of the key. The key is
a string of the node, as in `by node.zone`. A node without the key gets no result.
""",
        OVER_NODES,
    ),
    (
        """### Functions over the pods of a node

These functions read the pods that are placed on the node; `peer` is one of these pods. They skip pods for which `x` is
missing; a `c` that is unknown for a pod is not true for the pod. Only `min` and `max` can be missing.
""",
        OVER_PODS,
    ),
    (
        """### Functions over the nodes of a placement

These functions read the nodes of a placement. They skip nodes where `x` is missing.
""",
        OVER_PLACEMENT,
    ),
)


def page() -> str:
    """Return the text of the reference page about names and functions."""
    names = (part for root, intro in ROOTS.items() for part in (intro, _fields(root)))
    functions = (part for intro, group in GROUPS for part in (intro, _functions(group)))
    return "\n".join([HEAD, NAMES, *names, METRICS, "## Functions\n", *functions])


def written(names: Names, field: InputField) -> str:
    """Return a field as it is written in an expression."""
    return ".".join(names) + ('["k"]' if field.keyed else '("k")' if field.called else "")


def form(name: str, function: Function) -> str:
    """Return a call of a function as it is written in an expression."""
    return f"{name}({function.form})" + (" [by key]" if name in AGGREGATES else "")


def _fields(root: str) -> str:
    rows = (
        (f"`{written(names, field)}`", str(field.type), _missing(field), field.help)
        for names, field in FIELDS.items()
        if names[0] == root
    )
    return table(("name", "type", "may be missing", "value"), rows)


def _missing(field: InputField) -> str:
    return "yes" if field.type.gap is Gap.INPUT else "no"


def _functions(group: Mapping[str, Function]) -> str:
    rows = ((f"`{form(name, one)}`", one.help, f"`{one.example}`") for name, one in group.items())
    return table(("function", "value", "example"), rows)
