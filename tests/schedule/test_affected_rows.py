"""Plugins whose result for a row depends on other rows, and plugins that are omitted from records."""

# ruff: noqa: ARG002 - the fakes do not use all arguments of the protocols
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policysched.framework import Aspect
from policysched.schedule.cycle.record import make_record
from tests.build import node, pod
from tests.schedule.parts import FakeFilter, FakeScore, engine
from tests.schedule.test_evaluation import ABC, nodes, rejections


class AffectingFilter(FakeFilter):
    """A filter whose result depends on other rows."""

    affected: Any = None

    def affected_rows(self, state: Any, rows: Any) -> Any:
        return rows if self.affected is None else self.affected


class AffectingScore(FakeScore):
    """A score that depends on other rows."""

    affected: Any = None
    left_out = False

    def affected_rows(self, state: Any, rows: Any) -> Any:
        return rows if self.affected is None else self.affected

    def leaves_out(self, state: Any) -> bool:
        return self.left_out


@pytest.mark.parametrize("affected", [slice(0, 3), np.array([2], np.int32)])
def test_rows_that_a_change_affects_are_asked_again_and_decided_anew(affected: Any) -> None:
    around = nodes()
    rejecting, scoring = AffectingFilter("F", set(), Aspect.PODS), AffectingScore("S", {"c": 5}, Aspect.PODS)
    made = engine(around, [rejecting], [(scoring, 1)])
    assert made.decide(pod()).node == "c"
    rejecting.answer, rejecting.affected = {"c"}, affected
    scoring.answer, scoring.affected = {"b": 7}, slice(0, 3)
    around.set_pod(pod("p", on="a"))
    decision = made.decide(pod())
    assert (decision.node, set(rejections(decision))) == ("b", {"c"})
    assert rejecting.asked[1] == (list(ABC) if isinstance(affected, slice) else ["c"])


def test_a_plugin_that_affects_other_rows_is_not_asked_about_aspects_it_does_not_read() -> None:
    around = nodes()
    rejecting = AffectingFilter("F", set(), Aspect.PODS)
    rejecting.affected = slice(0, 3)
    made = engine(around, [rejecting])
    made.decide(pod())
    around.set_node(node("a", labels={"x": "y"}))
    made.decide(pod())
    assert len(rejecting.asked) == 1


def test_a_plugin_that_leaves_itself_out_is_in_no_record() -> None:
    made = engine(nodes(), (), [(AffectingScore("S", {}), 1), (FakeScore("T", {"a": 1}), 1)])
    assert set(make_record(made.decide(pod()))["scores"]["a"]) == {"S", "T"}
    AffectingScore.left_out = True
    try:
        assert make_record(made.decide(pod()))["scores"]["a"] == {"T": 1}
    finally:
        AffectingScore.left_out = False
