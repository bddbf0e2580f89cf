"""Dataclasses whose methods are made late behave as the standard ones."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest

from policysched.late_dataclass import dataclass as late

ARGUMENTS: list[dict[str, Any]] = [
    {"frozen": frozen, "slots": slots, "eq": eq, **more}
    for frozen in (False, True)
    for slots in (False, True)
    for eq in (False, True)
    for more in ({}, {"kw_only": True}, {"repr": False})
]
MARK = object()


def made(decorator: Callable[..., Any], **arguments: Any) -> type[Any]:
    """Make a class of every kind of field."""

    @decorator(**arguments)
    class Thing:
        """A thing."""

        COUNT: ClassVar[int] = 3
        name: str
        size: int = 7
        parts: list[int] = dataclasses.field(default_factory=list)
        unseen: str = dataclasses.field(default="u", repr=False)
        apart: str = dataclasses.field(default="a", compare=False)
        worked_out: int = dataclasses.field(default=0, init=False)
        fresh: dict[str, int] = dataclasses.field(default_factory=dict, init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "worked_out", self.size * 2)

    return Thing


def outcome(act: Callable[[], Any]) -> Any:
    """Give what comes of it, or the error."""
    try:
        return act()
    except Exception as error:
        return type(error), str(error)


def hash_type(obj: Any) -> type[Any]:
    return type(hash(obj))


OBJECTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {"name": "a"}),
    ((), {"name": "a", "apart": "b"}),
    ((), {"name": "a", "size": 1, "parts": [1], "unseen": "x"}),
    (("a",), {}),
    (("a", 1, [1], "x", "b"), {}),
    ((), {}),
    (("a", "b", "c", "d", "e", "f"), {}),
    ((), {"name": "a", "worked_out": 1}),
    ((), {"name": "a", "other": 1}),
    (("a",), {"name": "a"}),
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_objects_are_those_of_the_standard_decorator(arguments: dict[str, Any]) -> None:
    ours, theirs = made(late, **arguments), made(dataclasses.dataclass, **arguments)

    def seen(cls: type[Any], positional: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        obj = cls(*positional, **copy.deepcopy(named))
        shown = repr(obj) if arguments.get("repr", True) else ""
        again = cls(*positional, **copy.deepcopy(named))
        values = [getattr(obj, one.name) for one in dataclasses.fields(cls)]
        replaced = outcome(lambda: repr(dataclasses.replace(obj, size=9)) if shown else "")
        set_to = outcome(lambda: setattr(obj, "size", 5)), outcome(lambda: setattr(obj, "no_field", 5)) is None
        gone = outcome(lambda: delattr(obj, "size"))
        return [shown, obj == again, obj != again, values, replaced, set_to, gone]

    for one in OBJECTS:
        found = [outcome(partial(seen, cls, *one)) for cls in (ours, theirs)]
        assert found[0] == found[1]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_equality_and_hashes_are_those_of_the_standard_decorator(arguments: dict[str, Any]) -> None:
    for index, (_, one) in enumerate(OBJECTS[:3]):
        for _, two in OBJECTS[:3]:
            found = []
            for cls in (made(late, **arguments), made(dataclasses.dataclass, **arguments)):
                first, second = cls(**one), cls(**two)
                found.append((first == second, first == MARK, outcome(partial(hash_type, first))))
            assert found[0] == found[1], index


def test_hashes_are_those_of_the_fields_that_count() -> None:
    @late(frozen=True, slots=True)
    class Key:
        name: str
        number: int
        aside: str = dataclasses.field(default="", compare=False)

    @late(frozen=True)
    class Single:
        name: str

    @late(frozen=True, slots=True)
    class Empty:
        pass

    assert len({Key("a", 1), Key("a", 1, "x"), Key("a", 2)}) == 2
    assert hash(Key("a", 1)) == hash(("a", 1))
    assert hash(Single("a")) == hash(("a",))
    assert Empty() == Empty()
    assert hash(Empty()) == hash(())
    assert repr(Empty()).endswith("Empty()")


def test_methods_of_the_class_itself_stay() -> None:
    @late(frozen=True, slots=True)
    class Own:
        name: str

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 3

    assert repr(Own("a")) == "own"
    assert Own("a") == 4
    assert hash(Own("a")) == 3


def test_fields_are_inherited() -> None:
    @late(frozen=True, slots=True)
    class Base:
        name: str
        size: int = 1

    @late(frozen=True, slots=True)
    class Derived(Base):
        colour: str = "red"

    class Plain(Derived):
        pass

    assert Derived("a", colour="blue") == Derived("a", 1, "blue")
    assert Derived("a") != Base("a")
    assert Base("a") == Base("a")
    assert Plain("a").colour == "red"
    with pytest.raises(dataclasses.FrozenInstanceError):
        Plain("a").name = "b"  # type: ignore[misc]


@late(frozen=True, slots=True)
class Kept:
    """Something to be pickled."""

    name: str
    parts: tuple[int, ...] = ()


def test_frozen_objects_with_slots_are_copied_and_pickled() -> None:
    one = Kept("a", (1, 2))
    assert [copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))] == [one] * 3  # noqa: S301 - our own


def test_an_object_that_holds_itself_is_shown() -> None:
    @late(slots=True)
    class Knot:
        inner: Any = None

    knot = Knot()
    knot.inner = knot
    assert repr(knot).endswith("Knot(inner=...)")


def test_the_class_has_the_compiled_method_after_its_first_object() -> None:
    cls = made(late, frozen=True, slots=True)
    first = cls.__init__
    cls("a")
    assert cls.__init__ is not first
    assert cls.__init__.__qualname__ == first.__qualname__
    assert dataclasses.fields(cls)[0].name == "name"
    assert cls.__match_args__[0] == "name"
