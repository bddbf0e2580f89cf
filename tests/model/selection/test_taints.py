from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysched.model.objects import Taint, Toleration
from policysched.model.selection.node_selectors import UNSCHEDULABLE_TAINT, TolerationMatcher


def toleration(key: str = "", operator: str = "", value: str = "", effect: str = "") -> Toleration:
    return Toleration(key=key, operator=operator, value=value, effect=effect)


def taint(key: str = "k", value: str = "v", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


def tolerates(one: Toleration, of: Taint) -> bool:
    return TolerationMatcher([one]).covers(of)


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


def test_taints_of_the_effects_have_to_be_covered() -> None:
    taints = [taint("soft", effect="PreferNoSchedule"), taint("a"), taint("b", effect="NoExecute")]
    own = TolerationMatcher([toleration("a", "Exists")])
    assert not own.covers_all(taints)
    assert own.covers_all(taints, {"NoSchedule"})
    assert TolerationMatcher([toleration(operator="Exists")]).covers_all(taints)
    assert TolerationMatcher([]).covers_all([taints[0]])
    assert TolerationMatcher([]).covers_all([])


@pytest.mark.parametrize(
    ("tolerations", "count"),
    [
        ([], 2),
        ([toleration("a", "Exists")], 1),
        ([toleration("a", "Exists", effect="NoSchedule")], 2),
        ([toleration(operator="Exists")], 0),
    ],
)
def test_intolerable_taints_are_counted_for_preferences_only(tolerations: list[Toleration], count: int) -> None:
    taints = [taint("a", effect="PreferNoSchedule"), taint("b", effect="PreferNoSchedule"), taint("c")]
    assert TolerationMatcher(tolerations).count_intolerable(taints) == count


TEXTS = st.sampled_from(("", "a", "b"))
EFFECTS = st.sampled_from(("", "NoSchedule", "NoExecute", "PreferNoSchedule"))
OPERATORS = st.sampled_from(("", "Equal", "Exists", "Lt", "exists"))


def covers(one: Toleration, of: Taint) -> bool:
    """Compare one toleration and one taint as kube-scheduler does."""
    if one.effect not in ("", of.effect) or one.key not in ("", of.key):
        return False
    return one.operator == "Exists" or (one.operator in ("", "Equal") and one.value == of.value)


@given(
    st.lists(st.builds(toleration, TEXTS, OPERATORS, TEXTS, EFFECTS), max_size=4),
    st.builds(taint, TEXTS, TEXTS, EFFECTS),
)
def test_taint_is_covered_where_one_of_the_tolerations_covers_it(tolerations: list[Toleration], of: Taint) -> None:
    assert TolerationMatcher(tolerations).covers(of) is any(covers(one, of) for one in tolerations)


def test_many_taints_are_not_compared_with_each_of_many_tolerations() -> None:
    taints = [taint(f"k{number}") for number in range(20_000)]
    tolerations = [toleration(f"k{number}", "Equal", "v") for number in reversed(range(20_000))]
    before = time.process_time()
    assert TolerationMatcher(tolerations).covers_all(taints)
    assert time.process_time() - before < 5


def test_cordoned_node_is_tolerated_by_its_well_known_taint() -> None:
    assert tolerates(toleration("node.kubernetes.io/unschedulable", "Exists", effect="NoSchedule"), UNSCHEDULABLE_TAINT)
    assert not tolerates(toleration("node.kubernetes.io/not-ready", "Exists"), UNSCHEDULABLE_TAINT)
