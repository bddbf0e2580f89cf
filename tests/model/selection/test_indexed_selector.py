"""A selector indexed by label says what the compiled one says, and takes less than what it was made of."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from policysched.model.objects import LabelSelector, Requirement
from policysched.model.selection.indexed_selector import IndexedSelector
from policysched.model.selection.selectors import SelectorError, compile_selector

KEYS = ("a", "b", "example.com/c", "d")
VALUES = ("", "x", "y", "z", *(f"v{number}" for number in range(12)))
WRONG = (
    Requirement("a", "Near", ("x",)),
    Requirement("a", "Gt", ("1",)),
    Requirement("a", "In", ()),
    Requirement("a", "Exists", ("x",)),
    Requirement("-a", "Exists", ()),
    Requirement("A.B/c", "Exists", ()),
    Requirement("a", "NotIn", ("x", "-")),
    Requirement("k" * 64, "Exists", ()),
)


def drawn(rng: random.Random) -> LabelSelector:
    stated = []
    for _ in range(rng.choice((0, 1, 2, 5, 12))):
        operator = rng.choice(("In", "NotIn", "NotIn", "Exists", "DoesNotExist"))
        values = rng.sample(VALUES, rng.choice((1, 3, 12))) if operator in ("In", "NotIn") else ()
        stated.append(Requirement(rng.choice(KEYS), operator, tuple(values)))
    exactly = {key: rng.choice(VALUES) for key in KEYS if rng.random() < 0.15}
    return LabelSelector(match_labels=exactly, match_expressions=tuple(stated))


@pytest.mark.parametrize("seed", range(50))
def test_it_selects_what_the_compiled_selector_selects(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        selector = drawn(rng)
        indexed, compiled = IndexedSelector(selector), compile_selector(selector)
        for _ in range(20):
            labels = {key: rng.choice(VALUES) for key in KEYS if rng.random() < 0.5}
            assert indexed.matches(labels) == compiled.matches(labels), (selector, labels)


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_it_refuses_what_the_compiled_selector_refuses_with_the_same_text(wrong: Requirement) -> None:
    selector = LabelSelector(match_labels={"b": "x"}, match_expressions=(Requirement("d", "Exists"), wrong))
    with pytest.raises(SelectorError) as compiled:
        compile_selector(selector)
    with pytest.raises(SelectorError) as indexed:
        IndexedSelector(selector)
    assert str(indexed.value) == str(compiled.value)


def test_a_label_that_no_object_can_have_as_stated_is_refused() -> None:
    with pytest.raises(SelectorError):
        IndexedSelector(LabelSelector(match_labels={"a": "-"}))


@pytest.mark.parametrize("stated", [("NotIn", lambda n: (f"x{n}",)), ("Exists", lambda _: ())], ids=["NotIn", "Exists"])
def test_it_takes_little_for_each_requirement(stated: tuple[str, object]) -> None:
    operator, values = stated
    made = [Requirement(f"k{n}", operator, values(n)) for n in range(10_000)]  # type: ignore[operator]
    selector = LabelSelector(match_expressions=tuple(made))
    tracemalloc.start()
    kept = IndexedSelector(selector)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept.on("k1") is not None
    assert taken < 80 * len(made)
