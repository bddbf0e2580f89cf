from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched import dry_run
from policysched.app.running.metric_options import MetricOptions
from tests.examples.playing import EXAMPLES, failure, objects, playing, running

EXAMPLE = "tour/05-load-aware"
VALUES = EXAMPLES / EXAMPLE / "values" / "load.yaml"
BUSY = "load: {worker-1: 0.95, worker-2: 0.91, worker-3: 0.99, worker-4: 1.5}"


async def test_pods_go_to_the_least_loaded_node() -> None:
    async with playing(EXAMPLE, "policysched", metrics=MetricOptions(file=VALUES)) as on:
        await on.apply(*objects(EXAMPLE, "policy.yaml"))
        for pod in objects(EXAMPLE, "pods.yaml"):
            await on.api.create(pod)
        assert await running(on, 2) == {"web-1": "worker-3", "web-2": "worker-3"}


async def test_pods_wait_while_every_node_is_busy(tmp_path: Path) -> None:
    values = tmp_path / "load.yaml"
    values.write_text(BUSY)
    async with playing(EXAMPLE, "policysched", metrics=MetricOptions(file=values)) as on:
        await on.apply(*objects(EXAMPLE, "policy.yaml"))
        await on.api.create(objects(EXAMPLE, "pods.yaml")[0])
        message = await failure(on, "web-1")
        assert message.startswith("0/4 nodes are available: 4 policy load-aware/not-too-hot: the node is busy.")
        values.write_text(BUSY.replace("worker-2: 0.91", "worker-2: 0.5"))
        assert await running(on, 1) == {"web-1": "worker-2"}


def scores(metrics: Any) -> dict[str, float | None]:
    record = dry_run(
        objects(EXAMPLE, "cluster.yaml"),
        objects(EXAMPLE, "pods.yaml")[0],
        objects(EXAMPLE, "policy.yaml"),
        metrics=metrics,
    ).to_dict()
    found: dict[str, float | None] = record["rules"]["load-aware"]["scores"]["least-loaded"]
    return found


def test_less_load_scores_higher_and_unknown_load_is_in_between() -> None:
    assert scores(yaml.safe_load(VALUES.read_text())) == {
        "worker-2": pytest.approx(100 / 3),
        "worker-3": pytest.approx(800 / 9),
        "worker-4": 30,
    }


def test_without_values_the_policy_has_no_say() -> None:
    assert scores({}) == dict.fromkeys(("worker-1", "worker-2", "worker-3", "worker-4"), 30)
