from __future__ import annotations

from tests.examples.playing import objects, playing, running
from tests.examples.plugins import decided

EXAMPLE = "tour/03-namescore"


async def test_pod_lands_on_the_node_with_the_highest_score() -> None:
    (pod,) = objects(EXAMPLE, "pod.yaml")
    async with playing(EXAMPLE, "namescore-scheduler") as on:
        await on.apply(*objects(EXAMPLE, "policy.yaml"))
        record = on.explain(pod)
        await on.api.create(pod)
        assert await running(on, 1) == {"busybox-test-scheduler": "k8s-node02"}
    scores = record["rules"]["namescore"]["scores"]["namescore"]
    assert scores == {"k8s-node01": 10, "k8s-node02": 90, "k8s-node03": 50}


def test_plugin_lets_the_pod_land_there_too() -> None:
    (pod,) = objects(EXAMPLE, "pod.yaml")
    record = decided(EXAMPLE, pod, "namescore.py", "NameScore")
    assert record["selected"] == "k8s-node02"
    weighed = {node: of["namescore"] for node, of in record["scores"].items()}
    assert weighed == {"k8s-node01": 100, "k8s-node02": 900, "k8s-node03": 500}
