"""The `policysched` command: its subcommands (`commands`), with common error handling and exit codes.

Errors of ours become one line on stderr and an exit code: 2 for what the user gave, be it a server that does not
answer, 1 for the rest. Nobody who uses the command sees a traceback; an exception that is none of ours is a bug and may
show one.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

import typer

from policysched.cli.commands.check import check
from policysched.cli.commands.completion import completion
from policysched.cli.commands.config import config
from policysched.cli.commands.demo import demo
from policysched.cli.commands.dry_run import dry_run
from policysched.cli.commands.explain import explain
from policysched.cli.commands.fmt import fmt
from policysched.cli.commands.plan import plan
from policysched.cli.commands.plugin import new_plugin
from policysched.cli.commands.plugins import plugins
from policysched.cli.commands.run import run
from policysched.cli.commands.sandbox import sandbox
from policysched.cli.commands.test import test
from policysched.cli.commands.webhook import webhook
from policysched.cli.commands.why import why
from policysched.cli.flags.sections import RunCommand
from policysched.cli.options import OnceCommand
from policysched.cli.output import say_error, say_version, show_every_record
from policysched.errors import ConnectionProblemError, PolicyschedError, UsageError


def version() -> None:
    """Print the version."""
    say_version()


app = typer.Typer(
    name="policysched",
    help="A Kubernetes scheduler whose filter and score rules are SchedulingPolicy objects.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run", cls=RunCommand)(run)
app.command("completion", cls=OnceCommand)(completion)
for command in (dry_run, why, plan, check, test, fmt, plugins, webhook, explain, sandbox, demo, version):
    app.command(command.__name__.replace("_", "-"), cls=OnceCommand)(command)
app.add_typer(config)
app.add_typer(new_plugin, name="plugin")

INTERRUPTED = 130
_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))
"""What writing to a full or broken disk fails with."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and end the process."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale that cannot say → and a file's name that is no text are no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    show_every_record()
    sys.exit(execute(arguments))


def execute(arguments: Sequence[str] | None = None) -> int:
    """Run the command and give its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _call(given)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.flush()
    except (UsageError, ConnectionProblemError) as error:
        return _fail(str(error), 2)
    except PolicyschedError as error:
        return _fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        _leave_stdout()
        return 1
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _leave_stdout()
        return _fail(f"the output cannot be written: {os.strerror(error.errno).lower()}", 1)
    return code


def _leave_stdout() -> None:
    """Write nothing any more: what is left would fail again when the interpreter flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _call(arguments: list[str]) -> int:
    try:
        code = app(arguments, prog_name="policysched", standalone_mode=False)
    except typer.Exit as end:
        return end.exit_code
    except Exception as error:
        # Typer's own errors about flags and arguments; their class has had several homes, their shape has not.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        text = message().replace("Value error, ", "")
        return _fail(text[:1].lower() + text[1:].rstrip("."), 2) if text else 2
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    say_error(" ".join(message.split()))
    return code
