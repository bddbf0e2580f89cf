"""The process itself records: watches, bindings, edits of policies, a preemption, over HTTP."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from policysched.app.demo.scheduled_sandbox import scheduled_sandbox
from policysched.app.recording.file_format import read_entries
from policysched.app.running.run_options import RunOptions
from tests.app.dry_runs import Object, node, policy, requiring
from tests.app.recording.recorded import replayed


def waiting(name: str, cpu: str, urgency: str = "") -> Object:
    container = {
        "name": "c",
        "image": "i",
        "env": [{"name": "TOKEN", "value": "hunter2"}],
        "resources": {"requests": {"cpu": cpu}},
    }
    told = {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default", "annotations": told},
        "spec": {"schedulerName": "policysched", "priorityClassName": urgency, "containers": [container]},
    }  # fmt: skip


async def test_recorded_process_replays_without_a_difference(tmp_path: Path) -> None:
    nodes = [node(f"n{number}", labels={"disk": "ssd"}) for number in range(3)]
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 10,
    }
    async with scheduled_sandbox([*nodes, urgent], RunOptions(record=tmp_path)) as running:

        async def placed(name: str) -> str | None:
            found: Any = await running.api.get("Pod", name)
            home: str | None = found["spec"].get("nodeName")
            return home

        for number in range(9):
            await running.api.create(waiting(f"p{number}", "1"))
            await running.until(partial(placed, f"p{number}"), "placed")
        await running.apply(policy("keep", **requiring('node.labels["disk"] == "ssd"')))
        await running.api.create(waiting("after", "1"))
        await running.until(lambda: placed("after"), "placed")
        await running.apply(policy("keep", **requiring('node.name != "n0"')))
        await running.api.create(waiting("large", "3", urgency="urgent"))
        await running.until(lambda: placed("large"), "placed", 60)
    found = replayed(tmp_path)
    assert (found.differences, found.remainder, found.exit_code) == ([], [], 0)
    assert found.placed >= 11
    assert found.searches >= 1
    assert "hunter2" not in repr([list(read_entries(path)) for path in tmp_path.iterdir()])
