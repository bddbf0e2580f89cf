"""Parsing of the command line: an option that takes one value is rejected if it is given twice."""

from __future__ import annotations

import enum
import glob
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import typer
from typer.core import TyperCommand, TyperGroup

from policysched.cli.help import help_text
from policysched.errors import UsageError

_FILES: Final = frozenset(("FILE", "FILE|DIR", "FILE|DIR|live", "PATH"))
"""Value names of options and arguments that take files."""
_SHELL_OPTIONS: Final = ("install_completion", "show_completion")


class _Late:
    """Replaces Typer's value converter of a parameter; creates it only when a value needs conversion."""

    def __init__(self, parameter: Any) -> None:
        self._descriptor, self._made = parameter.type_descriptor, cast("Any", None)

    def coerce(self, value: Any, *, param: Any, **more: Any) -> Any:
        """Return the value of the parameter, converted to its type; texts and defaults need no conversion."""
        if isinstance(value, enum.Enum) or not isinstance(value, str | list | tuple):
            return () if value is None and param.multiple else value
        if self._descriptor.annotation in (str, list[str]):
            return list(value) if param.multiple else value
        if self._made is None:
            from typer._coercion import build_runtime_param  # noqa: PLC0415 - it takes longer to import than Typer itself

            self._made = build_runtime_param(self._descriptor)
        return self._made.coerce(value, param=param, **more)


def read_late(parameter: Any) -> None:
    """Make a parameter create its Typer value converter only when a value needs conversion.

    With versions of Typer without such validators this has no effect.
    """
    if hasattr(parameter, "type_descriptor") and getattr(parameter, "_runtime_param", None) is None:
        parameter._runtime_param = _Late(parameter)


class CommandGroup(TyperGroup):
    """A group of commands, without Typer's options that edit the files of shells."""

    def get_params(self, ctx):  # type: ignore[no-untyped-def]
        """Return the options of the group, whose value converters are created on first use."""
        found = [one for one in super().get_params(ctx) if one.name not in _SHELL_OPTIONS]
        for one in found:
            read_late(one)
        return found

    def parse_args(self, ctx, args):  # type: ignore[no-untyped-def]
        """Parse arguments; without arguments, print the help and exit with code 2."""
        if args or ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        with suppress(typer.Exit):
            super().parse_args(ctx, ["--help"])
        raise typer.Exit(2)

    def format_help(self, ctx, formatter):  # type: ignore[no-untyped-def]
        """Write the help text into the given formatter."""
        formatter.write(help_text(self, ctx))


class OnceCommand(TyperCommand):
    """A command that rejects repeated options."""

    def format_help(self, ctx, formatter):  # type: ignore[no-untyped-def]
        """Write the help text into the given formatter."""
        formatter.write(help_text(self, ctx))

    def get_help_option(self, ctx):  # type: ignore[no-untyped-def]
        """Return the option `--help`, whose value converter is created on first use."""
        found = super().get_help_option(ctx)
        if found is not None:
            read_late(found)
        return found

    def get_params(self, ctx):  # type: ignore[no-untyped-def]
        """Return the parameters of the command, whose value converters are created on first use."""
        found = super().get_params(ctx)
        for one in found:
            read_late(one)
        return found

    def parse_args(self, ctx, args):  # type: ignore[no-untyped-def]
        """Parse arguments; reject an option with one value that is given twice.

        Raises:
            UsageError: an option is given twice.
        """
        _, _, order = self.make_parser(ctx).parse_args(args=[*args])
        for parameter, count in Counter(order).items():
            many = any(getattr(parameter, name, False) for name in ("multiple", "is_flag", "count"))
            if count > 1 and parameter.nargs == 1 and not many:
                raise UsageError(f"{parameter.opts[0]} is given {count} times but takes one value")
        rest = super().parse_args(ctx, args)
        for one in self.params:
            if one.metavar in _FILES and (one.nargs == -1 or getattr(one, "multiple", False)):
                ctx.params[one.name] = [*_matching(ctx.params[one.name] or ())]
        return rest


def _matching(names: Iterable[Any]) -> Iterator[Any]:
    """Yield file names; replace a glob pattern by the matching files, unless a file has the pattern as its name.

    Raises:
        UsageError: no file matches a pattern.
    """
    for name in names:
        text = str(name)
        if not set("*?[") & set(text) or Path(text).exists():
            yield name
            continue
        found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - names stay as the user writes them
        if not found:
            raise UsageError(f"{text}: no file matches")
        yield from map(type(name), found)
