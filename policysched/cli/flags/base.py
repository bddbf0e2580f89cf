"""`Flags`: the flags and arguments of a command, as the fields of a dataclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, ClassVar, Self, get_type_hints

from policysched.cli.command_modules import function_of
from policysched.cli.options import OnceCommand


class Flags:
    """The flags and arguments of a command; the docstring is the help of the command.

    A subclass is a frozen dataclass. A field is a flag with Typer's annotation, or a group of flags: another subclass,
    whose flags come at the place of the field.
    """

    __slots__ = ()
    COMMAND: ClassVar[type] = OnceCommand
    """Class of the Typer command to which the flags belong."""

    @classmethod
    def parameters(cls) -> Iterator[inspect.Parameter]:
        """Yield the flags as parameters of the function that Typer calls for the command."""
        types = get_type_hints(cls, include_extras=True)
        for one in fields(cls):  # type: ignore[arg-type]  # subclasses are dataclasses
            if group := _group(types[one.name]):
                yield from group.parameters()
                continue
            default = inspect.Parameter.empty if one.default is MISSING else one.default
            yield inspect.Parameter(
                one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[one.name]
            )

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Return an instance of this class from the values that Typer parsed; `given` maps field names to values."""
        types = get_type_hints(cls, include_extras=True)
        names = [one.name for one in fields(cls)]  # type: ignore[arg-type]  # as above
        groups = {name: group.read(given) for name in names if (group := _group(types[name]))}
        return cls(**{name: given[name] for name in names if name not in groups}, **groups)


def _group(kind: Any) -> type[Flags] | None:
    return kind if isinstance(kind, type) and issubclass(kind, Flags) else None


def completed_by(section: str, module: str) -> Callable[[str], list[tuple[str, str]]]:
    """Return a shell completion function for a flag's values, which calls `complete` in the module of a command."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = function_of(section, module, "complete")(incomplete)
        return found

    return complete
