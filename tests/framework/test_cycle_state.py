from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from policysched.framework.cycle_state import CycleState


@dataclass
class Kept:
    names: list[str] = field(default_factory=list)

    def clone(self) -> Kept:
        return Kept(list(self.names))


def test_state_gives_what_was_written_until_it_is_deleted() -> None:
    state = CycleState()
    assert "a" not in state
    state.write("a", 1)
    state.write("a", 2)
    assert (state.read("a"), state.get("a"), state.get("b", 9), "a" in state) == (2, 2, 9, True)
    state.delete("a")
    state.delete("a")
    with pytest.raises(KeyError):
        state.read("a")


@pytest.mark.parametrize("value", [Kept(["x"]), ["x"]])
def test_clone_may_be_changed_without_a_trace(value: Kept | list[str]) -> None:
    state = CycleState()
    state.write("kept", value)
    state.skip_filter_plugins = frozenset("A")
    state.skip_score_plugins = frozenset("B")
    state.skip_pre_bind_plugins = frozenset("C")
    made = state.clone()
    inside = made.read("kept")
    (inside if isinstance(inside, list) else inside.names).append("y")
    made.write("more", 1)
    made.delete("kept")
    assert (state.read("kept"), "more" in state) == (value, False)
    assert value in (Kept(["x"]), ["x"])
    skipped = (made.skip_filter_plugins, made.skip_score_plugins, made.skip_pre_bind_plugins)
    assert skipped == (frozenset("A"), frozenset("B"), frozenset("C"))
