"""Edits of pods and nodes for proposed repairs, on copies.

Amounts are in the engine's units: cpu in thousandths, others whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from policysched.app.amounts import MAY_OVERCOMMIT, quantity
from policysched.model.quantity import parse

Object = Mapping[str, Any]
Edit = Callable[[Object], dict[str, Any]]


def edited(path: str, change: Callable[[Any], Any]) -> Edit:
    """Return an edit that changes the value at a path, and deletes the value if the change returns None."""
    *outer, last = path.split(".")

    def edit(raw: Object) -> dict[str, Any]:
        made = deepcopy(dict(raw))
        inside = made
        for name in outer:
            inside = inside.setdefault(name, {})
        value = change(inside.get(last))
        if value is None:
            inside.pop(last, None)
        else:
            inside[last] = value
        return made

    return edit


def at(raw: Object, path: str) -> Any:
    """Return the value at a path; None if the path does not exist."""
    value: Any = raw
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def becoming(value: Any) -> Callable[[Any], Any]:
    """Return a change that sets a value; the value None deletes the field."""
    return lambda _: value


def less(unwanted: Any) -> Callable[[Any], Any]:
    """Return a change that removes a value from a list, and deletes a list that becomes empty."""
    return lambda values: [one for one in values or () if one != unwanted] or None


def more(wanted: Any) -> Callable[[Any], Any]:
    """Return a change that appends a value to a list."""
    return lambda values: [*(values or ()), wanted]


def keyed(key: str, value: str | None) -> Callable[[Any], Any]:
    """Return a change that sets or deletes a key of a map."""

    def change(values: Any) -> Any:
        kept = {name: one for name, one in (values or {}).items() if name != key}
        return kept if value is None else kept | {key: value}

    return change


def requesting_less(resource: str, by: int) -> Edit:
    """Return an edit that reduces a pod's requests for a resource, of the container with the largest request first."""

    def edit(raw: Object) -> dict[str, Any]:
        made = deepcopy(dict(raw))
        spec = made["spec"]
        if resource in _requests(spec):
            _set(spec, resource, max(0, _amount(spec, resource) - by))
            return made
        target, left = _total(spec, resource) - by, by
        for one in sorted(spec.get("containers") or (), key=lambda one: -_amount(one, resource)):
            taken = min(left, _amount(one, resource))
            if taken > 0:
                _set(one, resource, _amount(one, resource) - taken)
                left -= taken
        for one in spec.get("initContainers") or ():
            if _amount(one, resource) > target:
                _set(one, resource, max(0, target))
        return made

    return edit


def with_room(resource: str, by: int) -> Edit:
    """Return an edit that increases a node's allocatable amount of a resource."""

    def change(had: Any) -> Any:
        stated = (had or {}).get(resource)
        before = 0 if stated is None else parse(stated).scaled(_exponent(resource))
        return {**(had or {}), resource: quantity(resource, before + by)}

    return edited("status.allocatable", change)


def containers(spec: Object) -> Iterator[Mapping[str, Any]]:
    """Yield a pod's containers, init containers last."""
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def term_text(term: Mapping[str, Any]) -> str:
    """Format a label selector as kubectl accepts it."""
    labels = [f"{key}={value}" for key, value in (term.get("matchLabels") or {}).items()]
    return ",".join([*labels, *(requirement_text(one) for one in term.get("matchExpressions") or ())]) or "any pod"


def requirement_text(one: Mapping[str, Any]) -> str:
    """Format a requirement of a label selector as kubectl accepts it."""
    values: Sequence[str] = one.get("values") or ()
    return " ".join(filter(None, (str(one.get("key", "")), str(one.get("operator", "")), ", ".join(map(str, values)))))


def _exponent(resource: str) -> int:
    return -3 if resource == "cpu" else 0


def _requests(owner: Mapping[str, Any]) -> Mapping[str, Any]:
    return at(owner, "resources.requests") or {}


def _amount(owner: Mapping[str, Any], resource: str) -> int:
    found = _requests(owner).get(resource)
    return 0 if found is None else parse(found).scaled(_exponent(resource))


def _total(spec: Mapping[str, Any], resource: str) -> int:
    own = sum(_amount(one, resource) for one in spec.get("containers") or ())
    return max([own, *(_amount(one, resource) for one in spec.get("initContainers") or ())])


def _set(owner: dict[str, Any], resource: str, amount: int) -> None:
    resources = owner["resources"] = dict(owner.get("resources") or {})
    written = quantity(resource, amount)
    resources["requests"] = {**(resources.get("requests") or {}), resource: written}
    if resource not in MAY_OVERCOMMIT and resource in (resources.get("limits") or {}):
        resources["limits"] = {**resources["limits"], resource: written}
