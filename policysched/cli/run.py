"""`policysched run`: the scheduler as a process, outside a cluster or in it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from policysched.cli.logs import log_to_stderr
from policysched.cli.options import Context, Kubeconfig
from policysched.cli.stopping import stop_on_signals


def run(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option("--scheduler-name", metavar="NAME", help="Pods of this schedulerName are ours; may be repeated."),
    ] = None,
    verbosity: Annotated[int, typer.Option("--v", metavar="LEVEL", min=0, max=10, help="How much is logged.")] = 0,
) -> int:
    """Run the scheduler until SIGTERM or SIGINT, with a kubeconfig or a pod's own credentials."""
    from policysched.app.profiles import DEFAULT_NAME  # noqa: PLC0415 - the engine is not needed for --help
    from policysched.app.run import RunOptions, run_scheduler  # noqa: PLC0415

    log_to_stderr(verbosity)
    names = tuple(dict.fromkeys(scheduler_name or [DEFAULT_NAME]))
    options = RunOptions(kubeconfig=kubeconfig, context=context, scheduler_names=names)

    async def until_stopped() -> None:
        await run_scheduler(options, stop_on_signals())

    asyncio.run(until_stopped())
    return 0
