"""The `policysched` command: sub-commands, flags, output, error handling, exit codes.

An expected error prints one line on stderr and ends the command with 2. Only a bug shows a traceback. No package
imports this one.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from policysched.cli.flags.sections import RunCommand
from policysched.cli.options import CommandGroup, OnceCommand
from policysched.cli.output import FAILED, INTERRUPTED, NO_READER, say_error, say_version, show_every_record
from policysched.errors import LeadershipLostError, PolicyschedError, SeveralProblemsError


def version() -> None:
    """Print the version.

    Exit codes: 0 success.
    """
    say_version()


def _complete_commands(incomplete: str) -> list[str]:
    return [name for name in COMMANDS if name.startswith(incomplete)]


def show_help(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND", help="Command, such as plan or config view.", autocompletion=_complete_commands
        ),
    ] = None,
) -> int:
    """Print the help of a command, like --help.

    Exit codes: 0 success; 2 unknown command.
    """
    return _call([*(command or ()), "--help"])


SECTIONS: Final = {
    "processes": ("Run", ("run", "webhook", "sandbox", "demo")),
    "decisions": ("Inspect decisions", ("dry-run", "why", "plan", "record", "replay")),
    "policies": ("Write policies", ("check", "test", "fmt", "explain", "example")),
    "settings": ("Set up", ("crd", "config", "plugins", "plugin", "completion")),
}
"""Sections of `--help` in order: package, title and commands.

Each command is a function in a module of the same name.
"""
GROUPS: Final = {"config": "config", "plugin": "new_plugin"}
"""Commands with subcommands, with the name of their Typer object in the module."""
OWN: Final[Mapping[str, Callable[..., Any]]] = {"version": version, "help": show_help}
"""Commands that are defined in this module."""
COMMANDS: Final = tuple(name for _, names in SECTIONS.values() for name in names)
_LIGHT: Final = {**dict(zip(OWN, OWN, strict=True)), "--version": "version"}
"""Words that need no other command's module, with the command to create for them."""


def make_app(*names: str) -> typer.Typer:
    """Return the Typer application with these subcommands, by default all; other subcommands are not imported."""
    app = typer.Typer(
        name="policysched",
        cls=CommandGroup,
        help="Kubernetes scheduler whose filter and score rules are SchedulingPolicy objects.",
        add_completion=not names,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for package, (title, commands) in SECTIONS.items():
        for name in (one for one in commands if not names or one in names):
            found = _found(package, name)
            if name in GROUPS:
                app.add_typer(found, name=name, rich_help_panel=title)
            else:
                app.command(name, cls=RunCommand if name == "run" else OnceCommand, rich_help_panel=title)(found)
    for name, function in OWN.items():
        app.command(name, cls=OnceCommand, rich_help_panel=SECTIONS["settings"][0])(function)
    return app


def _print_version(given: bool) -> None:
    if given:
        say_version()
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Define the options of the command itself."""


def _found(package: str, command: str) -> Any:
    module = command.replace("-", "_")
    return getattr(importlib.import_module(f"policysched.cli.commands.{package}.{module}"), GROUPS.get(command, module))


MOST_COLUMNS: Final = "999"
_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))
"""Error numbers of a full or broken disk."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit the process with its exit code."""
    _open_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale without → or a file name that is not text must not cause a failure.
        sys.stdout.reconfigure(errors="backslashreplace")
    # No large matrices are multiplied here, and NumPy's threads would use 0.1 s of each start.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _bound_columns()
    show_every_record()
    sys.exit(execute(arguments))


def _bound_columns() -> None:
    """Limit COLUMNS and LINES, because Rich pads each line to the stated width."""
    for name in ("COLUMNS", "LINES"):
        stated = os.environ.get(name, "")
        if stated.isdigit() and (len(stated) > len(MOST_COLUMNS) or not stated.isascii()):
            os.environ[name] = MOST_COLUMNS


def _open_streams() -> None:
    """Open the standard streams that the caller closed, so that no file gets their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends


def execute(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _call(given)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.flush()
    except LeadershipLostError as error:
        _fail(str(error))
        return 1  # as kube-scheduler
    except PolicyschedError as error:
        problems = error.problems if isinstance(error, SeveralProblemsError) else (str(error),)
        return max(map(_fail, problems))
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _leave_stdout()
        return NO_READER
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _leave_stdout()
        return _fail(f"cannot write the output: {os.strerror(error.errno).lower()}")
    return code


def _leave_stdout() -> None:
    """Redirect stdout to the null device, so that the flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _call(arguments: list[str]) -> int:
    completed = any(name.endswith("_COMPLETE") for name in os.environ)
    named = () if completed else [_LIGHT.get(one, one) for one in arguments[:1] if one in (*COMMANDS, *_LIGHT)]
    try:
        code = make_app(*named)(arguments, prog_name="policysched", standalone_mode=False)
    except typer.Exit as end:
        return end.exit_code
    except SystemExit as end:
        # Typer and Rich exit the process themselves after a broken pipe.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        raise
    except Exception as error:
        # Typer's own errors about flags and arguments, recognized by attributes, because their class has moved between
        # versions.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        text = message().replace("Value error, ", "")
        return _fail(text[:1].lower() + text[1:].rstrip(".")) if text else 2
    return code if isinstance(code, int) else 0


def _fail(message: str) -> int:
    say_error(" ".join(message.split()))
    return FAILED
