"""Making a plugin: arguments are read into what its factory declares, and every failure is one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pytest

from policysched.app.plugins.factories import CheckedFactory
from policysched.errors import UsageError

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True)
class Limits:
    cpu: int = 1


@dataclass(frozen=True)
class NodeArgs:
    node_label: str
    seconds: float = 5.0
    limits: list[Limits] = field(default_factory=list)
    best: Limits | None = None

    def __post_init__(self) -> None:
        if "/" not in self.node_label:
            raise ValueError("a label is key/value")


class CamelArgs(msgspec.Struct, rename="camel"):
    node_label: str = "none"
    weight: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1


class Base:
    def filter(self, state: Any, pod: Any, node: Any) -> None:
        """Let every pod pass."""


class WithDataclass(Base):
    def __init__(self, args: NodeArgs, handle: Decimal) -> None:
        self.made_of = args, handle


class WithStruct(Base):
    def __init__(self, args: CamelArgs) -> None:
        self.made_of = args


class WithDict(Base):
    def __init__(self, args: Mapping[str, Any], handle: Any = None) -> None:
        self.made_of = args, handle


class Bare(Base):
    pass


class WithDecimal(Base):
    def __init__(self, args: Decimal) -> None:
        self.made_of = args


class WithNumber(Base):
    def __init__(self, args: int) -> None:
        self.made_of = args


class Greedy(Base):
    def __init__(self, args: Any, handle: Any, more: Any) -> None:
        self.made_of = args, handle, more


class Broken(Base):
    def __init__(self, args: Any) -> None:
        raise KeyError(str(args))


def make(factory: Any, args: Any = None) -> Any:
    return CheckedFactory("P", factory)(args, "handle")


def refusal(factory: Any, args: Any = None) -> str:
    with pytest.raises(UsageError) as caught:
        make(factory, args)
    return str(caught.value)


def test_arguments_become_a_dataclass() -> None:
    made = make(WithDataclass, {"node_label": "a/b", "limits": [{"cpu": 2}, {}], "best": None})
    assert made.made_of == (NodeArgs("a/b", 5.0, [Limits(2), Limits(1)]), "handle")


def test_arguments_become_a_struct_with_its_own_names() -> None:
    assert make(WithStruct, {"nodeLabel": "a/b", "weight": 7}).made_of == CamelArgs("a/b", 7)
    assert make(WithStruct).made_of == CamelArgs()


def test_arguments_may_say_what_they_are() -> None:
    about = {"apiVersion": "example.io/v1", "kind": "PArgs"}
    assert make(WithStruct, {**about, "weight": 7}).made_of == CamelArgs(weight=7)
    assert make(WithDict, about).made_of[0] == about


def test_undeclared_arguments_stay_a_dict() -> None:
    assert make(WithDict, {"a": [1], "b": None}).made_of == ({"a": [1]}, "handle")
    assert make(WithDict).made_of == ({}, "handle")
    assert make(lambda args, _handle: WithDict(args), {"a": 1}).made_of == ({"a": 1}, None)


def test_factory_may_take_nothing() -> None:
    assert isinstance(make(Bare), Bare)
    assert refusal(Bare, {"a": 1}) == "plugin P: takes no arguments"


@pytest.mark.parametrize(
    ("factory", "args", "why"),
    [
        (WithDataclass, None, "args: Object missing required field `node_label`"),
        (WithDataclass, {"node_label": 5}, "args.node_label: expected text, got int: quote it"),
        (WithDataclass, {"node_label": "a/b", "seconds": "x"}, "args.seconds: expected float, got str"),
        (WithDataclass, {"node_label": "a/b", "limits": [{}, {"cpu": "1"}]}, "args.limits[1].cpu: expected int"),
        (WithDataclass, {"node_label": "a/b", "limits": [{"gpu": 1}]}, "args.limits[0].gpu: unknown field"),
        (WithDataclass, {"node_label": "a/b", "best": {"gpu": 1}}, "args.best.gpu: unknown field"),
        (WithDataclass, {"node_label": "a/b", "colour": 1}, "args.colour: unknown field"),
        (WithDataclass, {"node_label": "ab"}, "a label is key/value"),
        (WithStruct, {"weight": 101}, "args.weight: Expected `int` <= 100"),
        (WithStruct, [], "args must be an object"),
        (WithDict, "text", "args must be an object"),
        (WithDecimal, {}, "cannot resolve the annotation Decimal: name 'Decimal' is not defined"),
        (WithNumber, {}, "type of args must be a dataclass, a msgspec struct or a dict, not <class 'int'>"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_their_field(factory: Any, args: Any, why: str) -> None:
    said = refusal(factory, args)
    assert said.startswith("plugin P: ")
    assert why.lower().replace("`", "") in said.lower().replace("`", "")


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        (5, "5 is not a class or function of (args, handle)"),
        (Greedy, "factory needs more parameters than (args, handle)"),
        (lambda *, a: a, "factory needs more parameters than (args, handle)"),
        (lambda: None, "NoneType implements no extension point, such as filter or score"),
        (object, "object implements no extension point"),
    ],
)
def test_what_makes_no_plugin_is_refused(factory: Any, why: str) -> None:
    assert why in refusal(factory)


class Ending:
    """A plugin whose constructor ends the process."""

    def __init__(self) -> None:
        raise SystemExit(3)


class Lying:
    """A plugin that fails when it is looked at."""

    @property
    def filter(self) -> Any:
        raise RuntimeError("not now")


@pytest.mark.parametrize(("factory", "error"), [(Ending, "SystemExit: 3"), (Lying, "RuntimeError: not now")])
def test_plugin_that_ends_the_process_or_cannot_be_looked_at_is_refused(factory: Any, error: str) -> None:
    assert f"plugin P: creation failed: {error} (test_factories.py:" in refusal(factory)


def test_factory_that_raises_is_named_with_the_place() -> None:
    said = refusal(Broken, {"a": 1})
    assert re.fullmatch(r"""plugin P: creation failed: KeyError: "\{'a': 1\}" \(test_factories\.py:\d+\)""", said)
