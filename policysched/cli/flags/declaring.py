"""`flag`: declare a flag as a dataclass field, from which options, `--help` and values are made.

A section of flags is a frozen dataclass with a `TITLE`. The name of a field is the name of the flag, with `_` for `-`.
A flag that was not given is None; a repeatable flag that was not given is an empty tuple.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Final, TypeVar

import typer

from policysched.cli.flags.values import Form
from policysched.cli.options import OnceCommand
from policysched.errors import UsageError

T = TypeVar("T")
_KEY: Final = "flag"
_SHORT: Final = {"-v": "--v"}


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of `policysched run`."""

    form: Form
    help: str
    default: str = ""
    """The default, as pflag prints it; for help and logs only."""
    no_effect: str = ""
    """Reason why the flag is accepted but has no effect; empty if the flag has an effect."""
    name: str = ""
    section: str = ""

    @property
    def option(self) -> str:
        """The option as the user types it."""
        return f"--{self.name}"

    @property
    def described(self) -> str:
        """The flag's text in `--help`."""
        default = f" [default: {self.default}]" if self.default and self.default != "[]" else ""
        return f"No effect: {self.no_effect}." if self.no_effect else f"{self.help}{default}"

    def read(self, given: str | list[str] | None) -> Any:
        """Convert the text that a user gave for the flag, or the texts for a list, into the flag's value.

        Raises:
            UsageError: a value is invalid.
        """
        if isinstance(given, list):
            return tuple(value for text in given for value in self._read(text))
        if given is None:
            return () if self.form.is_list else None
        return self._read(given)

    def _read(self, text: str) -> Any:
        try:
            return self.form.read(text)
        except ValueError as error:
            raise UsageError(f'{self.option} "{text}" {error}') from error


def flag(form: Form, help: str = "", *, default: str = "", no_effect: str = "") -> Any:  # noqa: A002 - as Typer has it
    """Declare a flag as the field of a section, which is a dataclass with flags of one heading in `--help`."""
    declared = Flag(form, help, default, no_effect)
    return field(default=() if form.is_list else None, metadata={_KEY: declared})


def flags_of(section: type[Any]) -> Iterator[Flag]:
    """Yield the flags of a section, which is a dataclass whose fields were declared with `flag`."""
    for one in fields(section):
        made = one.metadata[_KEY]
        name = one.name.replace("_", "-")
        yield Flag(made.form, made.help, made.default, made.no_effect, name, section.TITLE)


def read_section(section: type[T], given: Mapping[str, Any]) -> T:
    """Return an instance of a dataclass of flags with the values that the user gave.

    Args:
        section: The section.
        given: The given texts, by field name.

    Raises:
        UsageError: a value is invalid.
    """
    found = {one.name.replace("-", "_"): one for one in flags_of(section)}
    return section(**{name: one.read(given.get(name)) for name, one in found.items()})


def given_flags(section: Any) -> dict[str, Any]:
    """Return the flags that the user gave among the flags of a dataclass: values by field name."""
    values = ((one.name, getattr(section, one.name)) for one in fields(section))
    return {name: value for name, value in values if value is not None and value != ()}


def _offering(choices: Sequence[str]) -> Callable[[str], list[str]] | None:
    """Return a completion function for the given values; None if no values are given."""

    def offered(incomplete: str) -> list[str]:
        return [one for one in choices if one.startswith(incomplete)]

    return offered if choices else None


def parameter(one: Flag) -> inspect.Parameter:
    """Return a flag as a parameter of the function that Typer calls; it receives the text that the user gave."""
    short = [letter for letter, long in _SHORT.items() if long == one.option]
    option = typer.Option(
        *short,
        one.option,
        metavar=one.form.metavar,
        help=one.described,
        rich_help_panel=one.section,
        autocompletion=_offering(one.form.choices),
    )
    kind = list[str] | None if one.form.is_list else str | None
    name = one.name.replace("-", "_")
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=None, annotation=Annotated[kind, option])


class FlagCommand(OnceCommand):
    """A command with flags in the syntax of Go: `--a_b` is `--a-b`, `--leader-elect` is true, `-v=2` is `--v=2`."""

    bare: Mapping[str, str] = {}
    """Value of each flag that is given without `=VALUE`, by option name such as `--leader-elect`."""

    def parse_args(self, ctx, args):  # type: ignore[no-untyped-def]
        """Parse the arguments after conversion to the syntax of Click."""
        return super().parse_args(ctx, [*_as_click(args, self.bare)])  # type: ignore[no-untyped-call]


def _as_click(arguments: Iterable[str], bare: Mapping[str, str]) -> Iterator[str]:
    for one in (rest := iter(arguments)):
        if one == "--":
            yield from (one, *rest)
            return
        name, equals, value = one.partition("=")
        name = _SHORT.get(name, name) if equals else name
        if name.startswith("--"):
            name = name.replace("_", "-")
        yield f"{name}={bare[name]}" if not equals and name in bare else f"{name}{equals}{value}"
