"""`policysched replay`: repeat the decisions of a record, or predict how a change affects the decisions."""

from __future__ import annotations

from collections.abc import Callable

from policysched.app.checking.check import findings
from policysched.app.dry_run.inputs import load_policies
from policysched.app.plugins.discovery import configurable_plugins
from policysched.app.replay.replay import replay as repeat
from policysched.app.replay.tables import replayed_parts
from policysched.app.replay.what_if import what_if
from policysched.cli.flags.decisions import ReplayFlags
from policysched.cli.output import INTERRUPTED, print_text
from policysched.cli.reports import print_plan, print_report, refuse_broken
from policysched.cli.rich_output import working
from policysched.framework.registry import PluginRegistry
from policysched.model.release_choice import AUTO
from policysched.reading.loading import load_one


def replay(flags: ReplayFlags) -> int:
    """Repeat the decisions of a record and print the differences; return the exit code."""
    known = configurable_plugins(flags.plugin, flags.config)
    for problem in known.problems:
        print_text(f"note: {problem}", stderr=True)
    with working("replaying") as tell:

        def progress(done: int) -> None:
            tell(f"{done:,} decisions")

        if flags.policy or flags.without_policy or flags.config or flags.kube_version != AUTO:
            return _what_if(flags, known.registry, progress)
        return _compare(flags, known.registry, progress)


def _compare(flags: ReplayFlags, plugins: PluginRegistry, progress: Callable[[int], None]) -> int:
    told = repeat(flags.files, plugins=plugins, progress=progress)
    print_report(told.to_dict(), replayed_parts(told), flags.output, "Replay", "replay")
    return INTERRUPTED if told.interrupted else told.exit_code


def _what_if(flags: ReplayFlags, plugins: PluginRegistry, progress: Callable[[int], None]) -> int:
    configuration = None if flags.config is None else load_one(flags.config, "KubeSchedulerConfiguration")
    notes: list[str] = []
    documents = load_policies(flags.policy or (), notes)
    refuse_broken(one for document in documents for one in findings(document.object, document))
    told = what_if(
        flags.files,
        policies=[one.object for one in documents],
        without_policies=flags.without_policy or (),
        config=configuration,
        plugins=plugins,
        progress=progress,
        kube_version=flags.kube_version,
    )
    return print_plan(told, notes, flags.output, "replay")
