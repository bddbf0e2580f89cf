from __future__ import annotations

from tests.examples.playing import objects, playing, running

EXAMPLE = "03-namescore"


async def test_pod_lands_on_the_node_with_the_highest_score() -> None:
    (pod,) = objects(EXAMPLE, "pod.yaml")
    async with playing(EXAMPLE, "namescore-scheduler") as on:
        await on.apply(*objects(EXAMPLE, "policy.yaml"))
        record = on.explain(pod)
        await on.api.create(pod)
        assert await running(on, 1) == {"busybox-test-scheduler": "k8s-node02"}
    scores = record["rules"]["namescore"]["scores"]["namescore"]
    assert scores == {"k8s-node01": 10, "k8s-node02": 90, "k8s-node03": 50}
