"""`policysched replay`: repeats the decisions of a record, optionally with a change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policysched.cli.formats import OutputFormat
from policysched.cli.options import Output, Plugin, WithoutPolicy
from policysched.cli.output import INTERRUPTED, say, working

if TYPE_CHECKING:
    from collections.abc import Callable

    from policysched.framework.registry import PluginRegistry


def replay(
    files: Annotated[list[Path], typer.Argument(metavar="FILE|DIR", help="Record files, or their folder.")],
    policy: Annotated[
        list[str] | None, typer.Option("--policy", metavar="FILE|DIR", help="Policies to add or replace; repeatable.")
    ] = None,
    without_policy: WithoutPolicy = None,
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="KubeSchedulerConfiguration to use instead of the recorded one."),
    ] = None,
    plugin: Plugin = None,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Repeat the decisions of a record and report differences.

    `policysched run --record` writes the record. With --policy, --without-policy or --config, reports which decisions
    the change would have affected.

    Example: `policysched replay /var/lib/policysched --policy policy.yaml`

    Exit codes: 0 no differences; 1 differences; 2 a file, the change or a flag is invalid, or a plugin failed; 130
    interrupted, with partial results.
    """
    from policysched.app.plugins.discovery import configurable_plugins  # noqa: PLC0415 - not needed for --help
    from policysched.cli.event_loop import uncollected  # noqa: PLC0415

    known = configurable_plugins(plugin, config)
    for problem in known.problems:
        say(f"note: {problem}", stderr=True)
    with uncollected(), working("replaying") as tell:

        def progress(done: int) -> None:
            tell(f"{done:,} decisions")

        if policy or without_policy or config:
            return _what_if(files, policy or [], without_policy or [], config, known.registry, progress, output)
        return _compared(files, known.registry, progress, output)


def _compared(files: list[Path], plugins: PluginRegistry, progress: Callable[[int], None], output: OutputFormat) -> int:
    from policysched.app.replay.replay import replay as replayed  # noqa: PLC0415 - as above
    from policysched.app.replay.tables import replayed_parts  # noqa: PLC0415
    from policysched.cli.reports import say_report  # noqa: PLC0415

    told = replayed(files, plugins=plugins, progress=progress)
    say_report(told.to_dict(), replayed_parts(told), output, "Replay", "replay")
    return INTERRUPTED if told.interrupted else told.exit_code


def _what_if(  # noqa: PLR0913, PLR0917 - what the flags say
    files: list[Path],
    policies: list[str],
    without: list[str],
    config: str | None,
    plugins: PluginRegistry,
    progress: Callable[[int], None],
    output: OutputFormat,
) -> int:
    from policysched.app.checking.check import findings  # noqa: PLC0415 - as above
    from policysched.app.dry_run.inputs import load_policies  # noqa: PLC0415
    from policysched.app.replay.what_if import what_if  # noqa: PLC0415
    from policysched.cli.reports import refuse_broken, say_plan  # noqa: PLC0415
    from policysched.reading.loading import load_one  # noqa: PLC0415

    configuration = None if config is None else load_one(config, "KubeSchedulerConfiguration")
    notes: list[str] = []
    documents = load_policies(policies, notes)
    refuse_broken(one for document in documents for one in findings(document.object, document))
    told = what_if(
        files,
        policies=[one.object for one in documents],
        without_policies=without,
        config=configuration,
        plugins=plugins,
        progress=progress,
    )
    return say_plan(told, notes, output, "replay")
