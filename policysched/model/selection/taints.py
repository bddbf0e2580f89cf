"""Which taints a pod tolerates.

Knows taints and tolerations only. The comparison operators `Lt` and `Gt` are behind a gate that is off in v1.36,
so a toleration with one of them tolerates nothing; so does one with an operator nobody knows.

Source: k8s.io/api/core/v1/toleration.go, component-helpers/scheduling/corev1/helpers.go,
plugins/tainttoleration/taint_toleration.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from policysched.model.objects import Taint, Toleration

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
REPELLING_EFFECTS: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
"""The effects that keep a pod off a node."""

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""What a cordoned node stands for where a pod's tolerations are asked."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether one toleration covers one taint; an empty effect or key covers every one."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def tolerates_any_way(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Tell whether one of the tolerations covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def find_untolerated(
    tolerations: Sequence[Toleration],
    taints: Sequence[Taint],
    effects: Collection[str] = REPELLING_EFFECTS,
) -> Taint | None:
    """Find the first taint of these effects that no toleration covers."""
    for taint in taints:
        if taint.effect in effects and not tolerates_any_way(tolerations, taint):
            return taint
    return None


def tolerates_all(
    tolerations: Sequence[Toleration],
    taints: Sequence[Taint],
    effects: Collection[str] = REPELLING_EFFECTS,
) -> bool:
    """Tell whether every taint of these effects is covered."""
    return find_untolerated(tolerations, taints, effects) is None


def preferring_tolerations(tolerations: Sequence[Toleration]) -> tuple[Toleration, ...]:
    """Keep the tolerations that count in scoring: of effect PreferNoSchedule or of every effect."""
    return tuple(one for one in tolerations if one.effect in ("", PREFER_NO_SCHEDULE))


def count_intolerable(tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> int:
    """Count the PreferNoSchedule taints that no toleration covers."""
    return sum(taint.effect == PREFER_NO_SCHEDULE and not tolerates_any_way(tolerations, taint) for taint in taints)
