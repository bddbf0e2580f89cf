"""Which texts of a SchedulingPolicy are expressions, by their paths in the object.

It knows the object's fields and no language. An object that is not of the expected shape has fewer texts, never an
error: whoever formats a file leaves it to `check` to find fault with the rest of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from policysched.model.policy import API_GROUP, KIND

Start = Literal["expr", "case"]
FIELDS: Final[tuple[tuple[str, ...], ...]] = (
    ("appliesTo",),
    ("let", "*", "value"),
    ("filters", "*", "when"),
    ("filters", "*", "require"),
    ("scores", "*", "when"),
    ("scores", "*", "value"),
    ("scores", "*", "cases", "*"),
)
"""Where expressions stand below `spec`; `*` is every item of a list."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A text, where it stands in its object, and what the language reads it as."""

    field: str
    text: str
    start: Start


def is_policy(raw: Mapping[str, Any]) -> bool:
    """Whether an object is one of our policies, of any version."""
    return raw.get("kind") == KIND and str(raw.get("apiVersion")).startswith(f"{API_GROUP}/")


def expressions(policy: Mapping[str, Any]) -> Iterator[Expression]:
    """Return the expressions of a policy; numbers and misplaced values are none."""
    spec = policy.get("spec")
    for steps in FIELDS:
        start: Start = "case" if "cases" in steps else "expr"
        for field, value in _reach(spec, steps, "spec"):
            if isinstance(value, str):
                yield Expression(field, value, start)


def with_expressions(policy: Mapping[str, Any], change: Callable[[Expression], str]) -> dict[str, Any]:
    """Return a policy with every expression changed; the given one stays as it is."""
    new = {one.field: change(one) for one in expressions(policy)}
    made: dict[str, Any] = _changed(dict(policy), "", new)
    return made


def _reach(value: Any, steps: tuple[str, ...], path: str) -> Iterator[tuple[str, Any]]:
    if not steps:
        yield path, value
    elif steps[0] == "*":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _reach(item, steps[1:], f"{path}[{index}]")
    elif isinstance(value, dict) and steps[0] in value:
        yield from _reach(value[steps[0]], steps[1:], f"{path}.{steps[0]}")


def _changed(value: Any, path: str, new: Mapping[str, str]) -> Any:
    match value:
        case dict():
            return {key: _changed(item, f"{path}.{key}" if path else key, new) for key, item in value.items()}
        case list():
            return [_changed(item, f"{path}[{index}]", new) for index, item in enumerate(value)]
        case str():
            return new.get(path, value)
    return value
