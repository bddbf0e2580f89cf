from __future__ import annotations

import numpy as np
import pytest

from policysched.framework import Action, Change, Code, Resource, Status, default_normalize, unresolvable, unschedulable


@pytest.mark.parametrize(
    ("scores", "feasible", "reverse", "expected"),
    [
        ([0, 5, 10], [1, 1, 1], False, [0, 50, 100]),
        ([0, 5, 10], [1, 1, 1], True, [100, 50, 0]),
        ([1, 2, 3], [1, 1, 1], False, [33, 66, 100]),
        ([4, 100, 2], [1, 0, 1], False, [100, None, 50]),
        ([0, 0], [1, 1], False, [0, 0]),
        ([0, 0], [1, 1], True, [100, 100]),
        ([0, 7], [1, 0], True, [100, None]),
        ([3], [1], True, [0]),
        ([], [], True, []),
    ],
)
def test_scores_are_scaled_by_their_maximum_over_the_feasible(
    scores: list[int], feasible: list[int], reverse: bool, expected: list[int | None]
) -> None:
    given = np.array(scores, np.int64)
    before = given.copy()
    made = default_normalize(given, np.array(feasible, np.bool_), reverse=reverse)
    assert [score if kept else None for score, kept in zip(made.tolist(), feasible, strict=True)] == expected
    assert (given == before).all()


def test_codes_have_the_names_of_kube_scheduler() -> None:
    assert [code.text for code in Code] == [
        "Success",
        "Error",
        "Unschedulable",
        "UnschedulableAndUnresolvable",
        "Wait",
        "Skip",
        "Pending",
    ]


@pytest.mark.parametrize("code", Code)
def test_three_codes_reject(code: Code) -> None:
    rejecting = {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING}
    assert Status(code).rejects is (code in rejecting)


def test_a_status_tells_its_reasons_and_who_gave_them() -> None:
    status = unschedulable("a", "b").by("P")
    assert (status.code, status.message, status.plugin) == (Code.UNSCHEDULABLE, "a, b", "P")
    assert unresolvable("a") == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("a",))


def test_an_update_is_all_its_parts() -> None:
    parts = [action for action in Action if action.name and action.name.startswith("UPDATE_")]
    assert [part for part in parts if not Action.UPDATE & part] == [Action.UPDATE_NODE_INFO]
    assert not Action.UPDATE & (Action.ADD | Action.DELETE)
    assert Action.ADD | Action.DELETE | Action.UPDATE == Action.ALL


def test_a_change_without_an_action_is_nothing() -> None:
    assert Change(Resource.NODE, Action.NONE).nothing
    assert not Change(Resource.NODE, Action.DELETE).nothing
