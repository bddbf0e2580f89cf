"""The examples' files, and a stage for them: a sandbox with the example's cluster and the real scheduler on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from policysched.app.demo.scheduled_sandbox import ScheduledSandbox, scheduled_sandbox
from policysched.app.running.metric_options import NO_METRICS, MetricOptions
from policysched.app.running.run_options import RunOptions
from policysched.reading.loading import load

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Object = dict[str, Any]


def objects(example: str, *names: str) -> list[Object]:
    return [dict(one.object) for name in names for one in load([str(EXAMPLES / example / name)])]


@asynccontextmanager
async def playing(
    example: str, scheduler_name: str, metrics: MetricOptions = NO_METRICS
) -> AsyncIterator[ScheduledSandbox]:
    options = RunOptions(scheduler_names=(scheduler_name,), metrics=metrics)
    async with scheduled_sandbox(objects(example, "cluster.yaml"), options, kubelet_seconds=0.01) as on:
        yield on


async def running(on: ScheduledSandbox, count: int) -> dict[str, str]:
    """Wait until that many pods run; give their nodes by name."""

    async def all_run() -> dict[str, str] | None:
        pods = await on.api.list("Pod")
        found = {
            pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["status"]["phase"] == "Running"
        }
        return found if len(found) == count else None

    return await on.until(all_run, f"{count} running pods")


async def failure(on: ScheduledSandbox, pod: str) -> str:
    """Wait for a pod's FailedScheduling event; give its message."""

    async def reported() -> str | None:
        for event in await on.api.list("Event"):
            if event["reason"] == "FailedScheduling" and event["involvedObject"]["name"] == pod:
                return str(event["message"])
        return None

    return await on.until(reported, f"an event about {pod}")
