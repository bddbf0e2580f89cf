"""Finds mistakes in the methods of an out-of-tree plugin: misspelt names, wrong parameters, `async def`.

The protocols in `methods` define the names and parameters. A plugin is checked when it is created, because the
scheduler never calls a misspelt method.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Final

from policysched.errors import UsageError
from policysched.framework.out_of_tree import methods

_CLOSE: Final = 0.8
"""Similarity of a name to a method's name, from 0 to 1, from which the name is reported as misspelt."""
_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check_methods(name: str, plugin: Any) -> None:
    """Check the methods of a plugin or of its class.

    Args:
        name: The plugin's name, for messages.
        plugin: The plugin or its class.

    Raises:
        UsageError: a method is misspelt, has other parameters, or must not be `async def`.
    """
    faults = [*_misspelt(plugin), *_wrong(plugin)]
    if faults:
        raise UsageError(f"plugin {name}: {'; '.join(faults)}")


@functools.cache
def _known() -> Mapping[str, tuple[str, ...]]:
    """Return the parameters, without `self`, of each method that a plugin can have, by the method's name."""
    protocols = (one for name, one in vars(methods).items() if name.endswith("Methods"))
    found = (item for one in protocols for item in vars(one).items())
    return {
        name: tuple(inspect.signature(method).parameters)[1:]
        for name, method in found
        if inspect.isfunction(method) and not name.startswith("_")
    }


def _misspelt(plugin: Any) -> Iterator[str]:
    folded = {_folded(name): name for name in _known()}
    for name in dir(plugin):
        if name.startswith("_") or name in _known() or not _is_method(plugin, name):
            continue
        close = difflib.get_close_matches(_folded(name), folded, n=1, cutoff=_CLOSE)
        meant = folded[close[0]] if close else ""
        if meant and _is_meant(plugin, name, meant):
            yield f'unknown method "{name}"; did you mean "{meant}"? start the names of helper methods with "_"'


def _folded(name: str) -> str:
    """Return a method name in a normal form that is the same for `pre_filter`, `preFilter` and `PreFilter`."""
    return name.replace("_", "").lower()


def _is_method(plugin: Any, name: str) -> bool:
    """Return whether an attribute of a plugin is a method, without evaluating properties."""
    found = inspect.getattr_static(plugin, name, None)
    return inspect.isfunction(found) or isinstance(found, staticmethod | classmethod)


def _is_meant(plugin: Any, name: str, method: str) -> bool:
    """Return whether a method is probably a misspelt plugin method: its name is similar, and so are its parameters."""
    wanted, given = _known()[method], _parameters(plugin, name)
    if _folded(name) == _folded(method) or given is None:
        return True
    return bool(given and wanted and given[0].name == wanted[0]) or _takes(given, len(wanted))


def _wrong(plugin: Any) -> Iterator[str]:
    for name, wanted in _known().items():
        method = getattr(plugin, name, None)
        if not callable(method):
            continue
        if name not in methods.MAY_WAIT and inspect.iscoroutinefunction(method):
            yield f"{name} cannot be `async def`, because a scheduling cycle does not wait"
        given = _parameters(plugin, name)
        if given is not None and not (_takes(given, len(wanted)) and _are_in_order(given, wanted)):
            yield f"{name} must have the parameters ({', '.join(wanted)}), not ({', '.join(map(_shown, given))})"


def _parameters(plugin: Any, name: str) -> list[inspect.Parameter] | None:
    """Return the parameters of a method without `self`; None if Python cannot read the signature."""
    try:
        found = list(inspect.signature(getattr(plugin, name)).parameters.values())
    except (TypeError, ValueError):
        return None
    is_unbound = isinstance(plugin, type) and inspect.isfunction(inspect.getattr_static(plugin, name))
    return found[1:] if is_unbound and found and found[0].kind not in _VARIADIC else found


def _takes(parameters: list[inspect.Parameter], count: int) -> bool:
    """Return whether a method can be called with a number of positional arguments."""
    try:
        inspect.Signature(parameters).bind(*range(count))
    except TypeError:
        return False
    return True


def _are_in_order(given: list[inspect.Parameter], wanted: tuple[str, ...]) -> bool:
    """Return whether each parameter is in its position: none has the name of a parameter of another position."""
    names = frozenset(name for parameters in _known().values() for name in parameters)
    return all(
        one.kind in _VARIADIC or one.name == name or one.name not in names
        for one, name in zip(given, wanted, strict=False)
    )


def _shown(parameter: inspect.Parameter) -> str:
    stars = _VARIADIC.index(parameter.kind) + 1 if parameter.kind in _VARIADIC else 0
    return "*" * stars + parameter.name
