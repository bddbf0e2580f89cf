from __future__ import annotations

from typing import Any

import pytest

from policysched import dry_run
from tests.examples.playing import failure, objects, playing, running

EXAMPLE = "tour/04-gpu-models"


async def test_pods_land_on_allowed_models_and_pack() -> None:
    async with playing(EXAMPLE, "policysched") as on:
        await on.apply(*objects(EXAMPLE, "policy.yaml"))
        placed: dict[str, str] = {}
        for pod in objects(EXAMPLE, "pods.yaml")[:5]:
            await on.api.create(pod)
            placed = await running(on, len(placed) + 1)
        wanting = objects(EXAMPLE, "pods.yaml")[5]
        await on.api.create(wanting)
        message = await failure(on, "wants-h100")
    assert placed["train-a100"].startswith("a100-")
    assert placed["train-a100-more"] == placed["train-a100"]
    assert placed["infer-t4-or-p100"].startswith(("t4-", "p100-"))
    assert placed["infer-again"] == placed["infer-t4-or-p100"]
    assert not placed["any-model"].startswith("cpu-")
    assert message.startswith(
        "0/6 nodes are available: 1 Insufficient nvidia.com/gpu, "
        "5 policy gpu-models/allowed-model: GPU model not allowed."
    )


def _record(annotations: dict[str, str], gpus: str) -> dict[str, Any]:
    pod = objects(EXAMPLE, "pods.yaml")[0]
    container = {"name": "a", "image": "a", "resources": {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}}
    spec = {"schedulerName": "policysched", "containers": [container]}
    changed = {**pod, "metadata": {"name": "asked", "annotations": annotations}, "spec": spec}
    return dry_run(objects(EXAMPLE, "cluster.yaml"), changed, objects(EXAMPLE, "policy.yaml"), seed=1).to_dict()


@pytest.mark.parametrize(
    ("annotations", "gpus", "feasible"),
    [
        ({"gpu-spec": "A100"}, "8", {"a100-1", "a100-2"}),
        ({"gpu-spec": "T4|P100"}, "1", {"t4-1", "t4-2", "p100-1"}),
        ({"gpu-spec": "T4|A100"}, "8", {"a100-1", "a100-2"}),
        ({"gpu-spec": ""}, "1", set()),
        ({"gpu-spec": "A10"}, "1", set()),
        ({}, "1", {"a100-1", "a100-2", "t4-1", "t4-2", "p100-1"}),
        ({"gpu-spec": "A100"}, "", {"a100-1", "a100-2", "t4-1", "t4-2", "p100-1", "cpu-1"}),
    ],
)
def test_allowed_models_are_those_of_the_annotation(annotations: dict[str, str], gpus: str, feasible: set[str]) -> None:
    assert set(_record(annotations, gpus).get("scores", {})) == feasible


def test_policy_says_nothing_about_pods_without_gpus() -> None:
    assert "rules" not in _record({"gpu-spec": "A100"}, "")
