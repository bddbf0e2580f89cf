"""Dry-runs with out-of-tree plugins: they decide, and whatever belongs to a running scheduler is left out."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.app.dry_run.dry_run import dry_run
from policysched.framework import Code, Status, unschedulable
from policysched.framework.registry import PluginRegistry
from tests.app.dry_runs import node, pod
from tests.schedule.out_of_tree import Scripted

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "mine", "plugins": {"multiPoint": {"enabled": [{"name": "X", "weight": 2}]}}}],
}


def record(plugin: Any, factory: Any = None) -> dict[str, Any]:
    registry = PluginRegistry()
    registry.register("X", factory or (lambda _args, _handle: plugin))
    objects = [node("a"), node("b"), node("c")]
    return dry_run(objects, pod(schedulerName="mine"), config=CONFIG, plugins=registry).to_dict()


def test_record_shows_an_out_of_tree_plugin_as_any_other() -> None:
    plugin = Scripted(filter={"c": unschedulable("not here")}, score={"a": 10, "b": 40})
    made = record(plugin)
    assert made["selected"] == "b"
    assert made["rejected"] == {"c": {"plugin": "X", "code": "Unschedulable", "reasons": ["not here"]}}
    assert {name: parts["X"] for name, parts in made["scores"].items()} == {"a": 20, "b": 80}


def test_dry_run_ends_with_the_decision() -> None:
    plugin = Scripted()
    record(plugin)
    asked = {call.removeprefix("X.").split()[0] for call in plugin.log}
    assert asked <= {"pre_enqueue", "pre_filter", "filter", "pre_score", "score", "normalize_score"}
    assert "score" in asked


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"filter": ValueError("a bug")}, "running \"X\" filter plugin: ValueError('a bug')"),
        ({"pre_filter": Status(Code.ERROR, ("no",))}, 'running PreFilter plugin "X": no'),
        (
            {"score": 101},
            'applying score defaultWeights on Score plugins: plugin "X" returns an invalid score 101, '
            "it should in the range of [0, 100] after normalizing",
        ),
    ],
)
def test_failure_of_an_out_of_tree_plugin_is_the_result(answers: dict[str, Any], error: str) -> None:
    made = record(Scripted(**answers))
    assert (made["result"], made["error"]) == ("Error", error)


def test_plugin_sees_the_nodes_and_no_scheduler() -> None:
    class Curious:
        def __init__(self, _args: Any, handle: Any) -> None:
            self.handle = handle

        def filter(self, _state: Any, of: Any, on: Any) -> Status | None:
            names = {one.name for one in self.handle.nodes}
            assert names == {"a", "b", "c"}
            if on.name == "a":
                self.handle.activate([of])
            return None

    made = record(None, Curious)
    assert made["error"].startswith(
        'running "X" filter plugin: NotConnectedError(\'no scheduler is running: a dry-run has'
    )
