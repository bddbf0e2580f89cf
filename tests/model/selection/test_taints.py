from __future__ import annotations

import pytest

from policysched.model.objects import Taint, Toleration
from policysched.model.selection.node_selectors import (
    UNSCHEDULABLE_TAINT,
    count_intolerable,
    find_untolerated,
    preferring_tolerations,
    tolerates,
    tolerates_all,
)


def toleration(key: str = "", operator: str = "", value: str = "", effect: str = "") -> Toleration:
    return Toleration(key=key, operator=operator, value=value, effect=effect)


def taint(key: str = "k", value: str = "v", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


@pytest.mark.parametrize(
    ("one", "covered"),
    [
        (toleration("k", "Equal", "v", "NoSchedule"), True),
        (toleration("k", "", "v", "NoSchedule"), True),
        (toleration("k", "Equal", "v"), True),
        (toleration("k", "Equal", "w"), False),
        (toleration("k", "Equal", "v", "NoExecute"), False),
        (toleration("l", "Equal", "v"), False),
        (toleration("k", "Exists"), True),
        (toleration("k", "Exists", "w"), True),
        (toleration("l", "Exists"), False),
        (toleration("", "Exists"), True),
        (toleration("", "Exists", effect="NoExecute"), False),
        (toleration("", "Equal", "v"), True),
        (toleration("", "", "w"), False),
        (toleration("k", "Lt", "5"), False),
        (toleration("k", "Gt", "5"), False),
        (toleration("k", "exists"), False),
    ],
)
def test_toleration_covers_taint(one: Toleration, covered: bool) -> None:
    assert tolerates(one, taint()) is covered


def test_comparison_operators_cover_nothing_as_their_gate_is_off() -> None:
    assert not tolerates(toleration("k", "Lt", "5"), taint("k", "3"))
    assert not tolerates(toleration("k", "Gt", "3"), taint("k", "5"))


def test_first_uncovered_taint_of_the_effects_is_found() -> None:
    taints = [taint("soft", effect="PreferNoSchedule"), taint("a"), taint("b", effect="NoExecute"), taint("c")]
    tolerations = [toleration("a", "Exists")]
    assert find_untolerated(tolerations, taints) == taints[2]
    assert find_untolerated(tolerations, taints, {"NoSchedule"}) == taints[3]
    assert not tolerates_all(tolerations, taints)
    assert tolerates_all([toleration(operator="Exists")], taints)
    assert tolerates_all([], [taints[0]])
    assert tolerates_all([], [])


def test_intolerable_taints_are_counted_for_preferences_only() -> None:
    taints = [taint("a", effect="PreferNoSchedule"), taint("b", effect="PreferNoSchedule"), taint("c")]
    assert count_intolerable([], taints) == 2
    assert count_intolerable([toleration("a", "Exists")], taints) == 1
    assert count_intolerable([toleration(operator="Exists")], taints) == 0


def test_tolerations_of_preferences_are_those_of_that_effect_or_of_all() -> None:
    kept = [toleration("a"), toleration("b", effect="PreferNoSchedule")]
    assert preferring_tolerations([*kept, toleration("c", effect="NoSchedule")]) == tuple(kept)


def test_cordoned_node_is_tolerated_by_its_well_known_taint() -> None:
    assert tolerates(toleration("node.kubernetes.io/unschedulable", "Exists", effect="NoSchedule"), UNSCHEDULABLE_TAINT)
    assert not tolerates(toleration("node.kubernetes.io/not-ready", "Exists"), UNSCHEDULABLE_TAINT)
