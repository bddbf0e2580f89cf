"""The `policysched` command: sub-commands, flags, output, error handling, exit codes.

An expected error prints one line on stderr and ends the command with 2. Only a bug shows a traceback. No package
imports this one.
"""

from __future__ import annotations

import errno
import gc
import inspect
import io
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from policysched.cli.collector import uncollected
from policysched.cli.command_modules import function_of
from policysched.cli.flags.base import Flags
from policysched.cli.options import CommandGroup
from policysched.cli.output import FAILED, INTERRUPTED, NO_READER, print_error, show_every_record
from policysched.errors import LeadershipLostError, PolicyschedError, SeveralProblemsError

PROCESSES: Final = "processes"
"""Name of the section of long-running commands; commands of other sections run without garbage collection."""
SECTIONS: Final = {
    PROCESSES: ("Run", ("run", "webhook", "sandbox", "demo")),
    "decisions": ("Inspect decisions", ("dry-run", "why", "plan", "record", "replay")),
    "policies": ("Write policies", ("check", "test", "fmt", "convert", "explain", "example", "translate")),
    "settings": ("Set up", ("crd", "config", "plugins", "plugin", "completion", "version", "help")),
}
"""Sections of `--help` in order: name, title and commands.

Each section has a module in `policysched.cli.flags` and a package in `policysched.cli.commands`. The flags of `dry-run`
are the class DryRunFlags, its work is the function `dry_run` in the module `dry_run`. The flags of `config view` are
ConfigViewFlags, its work is the function `view` in the module `config`.
"""
GROUPS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "config": ("Show or check scheduler configurations.", ("view", "check")),
    "plugin": ("Create a plugin.", ("new",)),
}
"""Commands with subcommands: for each, its help text and its subcommands."""
COMMANDS: Final = tuple(name for _, names in SECTIONS.values() for name in names)


def make_app(*names: str) -> typer.Typer:
    """Return the `policysched` command with the named subcommands (default: all); import only the flags of these."""
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
    for section, (title, commands) in SECTIONS.items():
        for name in (one for one in commands if not names or one in names):
            if name in GROUPS:
                app.add_typer(_make_group(section, name), name=name, rich_help_panel=title)
            else:
                _add_command(app, section, (name,), title)
    return app


def _make_group(section: str, name: str) -> typer.Typer:
    text, subcommands = GROUPS[name]
    group = typer.Typer(name=name, cls=CommandGroup, help=text)
    group.callback()(_no_options)
    for one in subcommands:
        _add_command(group, section, (name, one), None)
    return group


def _add_command(app: typer.Typer, section: str, words: tuple[str, ...], title: str | None) -> None:
    """Add a command to an app; the command's module is imported when the command runs."""
    path = [word.replace("-", "_") for word in words]
    name = "".join(part.title() for word in path for part in word.split("_"))
    flags: type[Flags] = getattr(import_module(f"policysched.cli.flags.{section}"), f"{name}Flags")

    def run(**given: Any) -> Any:
        read = flags.read(given)
        with uncollected():
            function = function_of(section, path[0], path[-1])
            if section != PROCESSES:
                return function(read)
        gc.freeze()
        return function(read)

    run.__name__, run.__doc__ = path[-1], flags.__doc__
    run.__signature__ = inspect.Signature(list(flags.parameters()))  # type: ignore[attr-defined]
    app.command(words[-1], cls=flags.COMMAND, rich_help_panel=title)(run)


def _no_options() -> None:
    """Do nothing: the callback that Typer requires for a group of commands without options."""


def _print_version(given: bool) -> None:
    if given:
        function_of("settings", "version", "print_version")()
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Define the options of `policysched` itself, which precede the subcommand."""


MOST_COLUMNS: Final = "999"
_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))
"""Error numbers that mean a full or broken disk."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the `policysched` command and exit the process with the command's exit code."""
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
    """Limit the environment variables COLUMNS and LINES, because Rich pads each line to the width in COLUMNS."""
    for name in ("COLUMNS", "LINES"):
        stated = os.environ.get(name, "")
        if stated.isdigit() and (len(stated) > len(MOST_COLUMNS) or not stated.isascii()):
            os.environ[name] = MOST_COLUMNS


def _open_streams() -> None:
    """Open the standard streams that the caller closed, so that no file gets descriptor 0, 1 or 2."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends


def execute(arguments: Sequence[str] | None = None) -> int:
    """Run the `policysched` command, print its error if it fails, and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = call(given)
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
    """Redirect stdout to the null device, so that the flush at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def call(arguments: list[str]) -> int:
    """Run the command in `arguments` and return its exit code; print errors about flags, raise other errors."""
    completed = any(name.endswith("_COMPLETE") for name in os.environ)
    first = "version" if arguments[:1] == ["--version"] else "".join(arguments[:1])
    named = (first,) if first in COMMANDS and not completed else ()
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
    print_error(" ".join(message.split()))
    return FAILED
