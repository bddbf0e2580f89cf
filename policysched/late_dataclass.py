"""`dataclass` whose methods are made late: a start imports 190 such classes and makes objects of half of them.

The standard decorator compiles six functions for a frozen class, half a millisecond each time. Here it finds the fields
and makes the slots; `__init__` is compiled with the first object, the other methods go by the names of the fields. Who
uses such a class sees no difference but one: `inspect.signature` names no parameters before there is an object. Orders
are not made, because no class of ours has one.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, repr=True, **others):  # noqa: A002 - the standard names
        """Make a class a dataclass, as the standard decorator does; `others` are its arguments `slots` and the like."""

        def made(given):
            stated = frozenset(vars(given))
            new = dataclasses.dataclass(init=False, repr=False, eq=False, **others)(given)
            _add_methods(new, stated, frozen=frozen, eq=eq, shows=repr)
            if frozen and others.get("slots"):
                new.__getstate__, new.__setstate__ = _state, _set_state
            return new

        return made if cls is None else made(cls)


__all__ = ["dataclass"]
_GIVEN: Any = object()
"""What a parameter has whose default is made anew each time."""


def _add_methods(cls: type[Any], stated: frozenset[str], *, frozen: bool, eq: bool, shows: bool) -> None:
    """Add the methods that the class does not have itself."""
    fields = dataclasses.fields(cls)
    compared = _values(one.name for one in fields if one.compare)
    methods: dict[str, Any] = {"__init__": _late_init(cls, frozen=frozen)}
    if shows:
        methods["__repr__"] = _shown(tuple(one.name for one in fields if one.repr))
    if eq:
        methods["__eq__"] = _equal(compared)
        if "__hash__" not in stated or cls.__hash__ is None:
            hashed = _values(one.name for one in fields if (one.compare if one.hash is None else one.hash))
            cls.__hash__ = _hashed(hashed) if frozen else None  # type: ignore[assignment]
    if frozen:
        methods |= _refusing(cls, frozenset(one.name for one in fields))
    for name, method in methods.items():
        if name not in stated:
            method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)


def _late_init(cls: type[Any], *, frozen: bool) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
        init = _init(cls, frozen=frozen)
        if vars(cls).get("__init__") is __init__:
            cls.__init__ = init
        init(self, *args, **kwargs)

    return __init__


def _init(cls: type[Any], *, frozen: bool) -> Callable[..., None]:
    """Compile the method that takes the fields of a class."""
    known: dict[str, Any] = {"_given": _GIVEN, "_set": object.__setattr__}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    body = []
    for one in dataclasses.fields(cls):
        name, value, default = one.name, one.name, ""
        if one.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = one.default_factory
            value = f"(_make_{name}() if {name} is _given else {name})" if one.init else f"_make_{name}()"
            default = "=_given"
        elif one.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = one.default
            value = name if one.init else f"_default_{name}"
            default = f"=_default_{name}"
        elif not one.init:
            continue
        if one.init:
            parameters[bool(one.kw_only)].append(f"{name}{default}")
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    keywords = ["*", *parameters[True]] if parameters[True] else []
    text = f"def __init__({', '.join(('self', *parameters[False], *keywords))}):\n " + "\n ".join(body or ["pass"])
    exec(text, known)  # noqa: S102 - the names of fields are identifiers, as the compiler saw them
    init: Callable[..., None] = known["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return init


def _values(names: Any) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the values of some fields of an object."""
    chosen = tuple(names)
    if len(chosen) > 1:
        return attrgetter(*chosen)
    return lambda obj: tuple(getattr(obj, name) for name in chosen)


def _shown(names: tuple[str, ...]) -> Callable[[Any], str]:
    @recursive_repr()
    def shown(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return shown


def _equal(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hashed(values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:  # noqa: N807 - it is one
        return hash(values(self))

    return __hash__


def _refusing(cls: type[Any], names: frozenset[str]) -> dict[str, Any]:
    """Make what keeps the fields of an object as they are."""

    def set_attribute(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": set_attribute, "__delattr__": delete_attribute}


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
