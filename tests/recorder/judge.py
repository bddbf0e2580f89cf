"""Our side of scripts beside kube-scheduler's: plays both and makes what differs small enough to read.

kube-scheduler runs its bindings beside its cycles, so that one script may go differently in it from run to run: whether
a pod's own update is seen before its next attempt, say. Ours has to do what it does in one of its runs.

`python -m tests.recorder.judge FILE` plays the script of a file.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.oracle.minors import release_of
from tests.recorder import ours
from tests.recorder.compare import differences
from tests.recorder.theirs import InvalidScriptError, KubeScheduler

Script = dict[str, Any]
RUNS: Final = 30
"""How often kube-scheduler is asked before a script counts as one that differs."""


def disagreement(kube: KubeScheduler, script: Script, runs: int = RUNS) -> list[str]:
    """Tell where ours does what kube-scheduler never does, as the smallest diff there is; empty where it does not.

    A script that kube-scheduler refuses, or that removes what is gone on either side, is no disagreement.
    """
    smallest: list[str] = []
    mine = None
    for _ in range(runs):
        try:
            theirs = kube.play(script)
            mine = mine or ours.play(script, release_of(kube))
        except InvalidScriptError:
            return []
        found = differences(script, mine, theirs)
        if not found:
            return []
        if not smallest or len(found) < len(smallest):
            smallest = found
    return smallest


def shrink(script: Script, still_fails: Callable[[Script], bool]) -> Script:
    """Drop steps, plugins and answers for as long as the script still fails."""
    smaller: Script | None = script
    while smaller is not None:
        script = smaller
        smaller = next((one for one in _smaller(script) if still_fails(one)), None)
    return script


def _smaller(script: Script) -> Iterator[Script]:
    for number in reversed(range(len(script["steps"]))):
        yield _without(script, "steps", number)
    for number, plugin in enumerate(script["plugins"]):
        if plugin["name"] != "order":
            for path in _parts(plugin):
                yield _without(script, "plugins", number, *path)
    for point, listed in script["config"]["profiles"][0]["plugins"].items():
        # Without the default binder nobody binds, and without `order` nodes have the same total.
        for number in range(len(listed.get("enabled", ())) - (point in ("bind", "score"))):
            yield _without(script, "config", "profiles", 0, "plugins", point, "enabled", number)


def _parts(plugin: Any) -> Iterator[tuple[Any, ...]]:
    """Name what may be left out of a plugin, larger parts first."""
    for point, answers in plugin.get("answers", {}).items():
        yield "answers", point
        yield from (("answers", point, pod) for pod in answers)
        yield from (("answers", point, pod, place) for pod, given in answers.items() for place in range(len(given)))
    yield from ((flag,) for flag in ("events", "plainFilter", "plainScore") if flag in plugin)


def _without(script: Script, *path: Any) -> Script:
    smaller = copy.deepcopy(script)
    inner: Any = smaller
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return smaller


def main() -> None:
    """Print where both differ about the script in the file that the command line names."""
    script = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    with KubeScheduler() as kube:
        print("\n".join(disagreement(kube, script)) or "no difference")  # noqa: T201 - a command's output


if __name__ == "__main__":
    main()
