"""Dry-runs with a configuration that has extenders: they are asked over HTTP, and what they say is in the record."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from policysched.app.dry_run.dry_run import dry_run
from policysched.errors import UsageError
from tests.extenders.fake_extender import FakeExtender, fake_extender

GPU = "example.com/gpu"
NODES = [
    {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"rack": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", GPU: "0"}, "nodeInfo": {"x": "y"}},
    }
    for name in ("n1", "n2", "n3")
]


def pod(**requests: str) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}]
    return {"kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": containers}}


def configuration(fake: FakeExtender, **extender: Any) -> dict[str, Any]:
    given = {"urlPrefix": fake.url, "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 2}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [given | extender],
    }


async def record(fake: FakeExtender, of: dict[str, Any], **extender: Any) -> dict[str, Any]:
    config = configuration(fake, **extender)
    made = await asyncio.to_thread(dry_run, NODES, of, config=config, seed=1)
    return made.to_dict()


async def test_record_has_what_extenders_reject_and_score() -> None:
    async with fake_extender() as fake:
        fake.answers["filter"] = lambda asked: {
            "Nodes": {"items": asked["Nodes"]["items"][:2]}, "FailedNodes": {"n3": "too far"}
        }  # fmt: skip
        fake.answers["prioritize"] = lambda _: [{"Host": "n2", "Score": 9}]
        made = await record(fake, pod(cpu="1"))
    assert made["rejected"]["n3"] == {"plugin": "Extender", "code": "Unschedulable", "reasons": ["too far"]}
    assert {node: scores[fake.url] for node, scores in made["scores"].items()} == {"n1": 0, "n2": 180}
    assert made["best"] == ["n2"]
    assert made["total"]["n2"] - made["total"]["n1"] == 180
    sent = fake.asked[0][1]
    assert sent["Nodes"]["items"][0] == {
        "metadata": {"name": "n1", "labels": {"rack": "n1"}},
        "status": NODES[0]["status"],
    }
    assert sent["Pod"]["spec"]["containers"][0]["image"] == "i"


async def test_extender_that_fails_is_the_records_error_unless_it_is_ignorable() -> None:
    async with fake_extender() as fake:
        made = await record(fake, pod(cpu="1"))
        assert (made["result"], made["error"]) == (
            "Error", f"failed filter with extender at URL {fake.url}/filter, code 404"
        )  # fmt: skip
        assert (await record(fake, pod(cpu="1"), ignorable=True))["result"] == "Scheduled"


@pytest.mark.parametrize(("ignored", "result"), [(True, "Scheduled"), (False, "Unschedulable")])
async def test_resource_that_the_scheduler_ignores_is_the_extenders_alone(ignored: bool, result: str) -> None:
    managed = [{"name": GPU, "ignoredByScheduler": ignored}]
    async with fake_extender() as fake:
        fake.answers["filter"] = lambda asked: {"NodeNames": asked["NodeNames"]}
        settings = {"managedResources": managed, "nodeCacheCapable": True, "prioritizeVerb": ""}
        assert (await record(fake, pod(**{GPU: "1"}), **settings))["result"] == result
        assert (await record(fake, pod(cpu="1"), **settings))["result"] == "Scheduled"
    assert len(fake.asked) == ignored  # where nothing is left, and of a pod that asks for none, nobody asks


async def test_ignorable_extenders_are_asked_last() -> None:
    async with fake_extender() as one, fake_extender() as two:
        for fake in (one, two):
            fake.answers["filter"] = lambda asked: {"NodeNames": asked["NodeNames"][1:]}
        config = configuration(one, nodeCacheCapable=True, prioritizeVerb="", ignorable=True)
        config["extenders"] += configuration(two, nodeCacheCapable=True, prioritizeVerb="")["extenders"]
        await asyncio.to_thread(dry_run, NODES, pod(cpu="1"), config=config)
    assert (len(two.asked[0][1]["NodeNames"]), len(one.asked[0][1]["NodeNames"])) == (3, 2)


def test_extender_without_a_url_is_refused() -> None:
    with pytest.raises(UsageError, match="urlPrefix is not an http or https URL"):
        dry_run(NODES, pod(cpu="1"), config=configuration(FakeExtender(url="nowhere")))
