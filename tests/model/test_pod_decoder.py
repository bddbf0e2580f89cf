"""Pods of one template share what they have in common, and are what they would be each by itself."""

from __future__ import annotations

import copy
import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any
from weakref import ref

import msgspec
import pytest

from bench import start
from policysched.model import pod_decoder
from policysched.model.decode import ObjectError, decode_pod
from policysched.model.objects import Pod
from policysched.model.pod_decoder import PodDecoder

MOST_BYTES = 1100
"""What a pod more of a template takes: the structs and its own texts."""
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]},
            ]
        }
    }
}
TEXT = msgspec.json.Encoder(order="deterministic")


def made(index: int, **spec: Any) -> dict[str, Any]:
    """Make a pod as it runs, with a volume of its own and all that pods of one template may differ in."""
    pod = start.pod(index, f"node-{index % 3}")
    pod["metadata"]["annotations"] = {"index": "0"}
    pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web", "uid": "r", "controller": True}]
    pod["spec"] |= {"volumes": [{"name": "kube-api-access-0"}], "affinity": copy.deepcopy(AFFINITY), **spec}
    pod["status"]["containerStatuses"][0]["resources"] = {"requests": {"cpu": "100m"}}
    return pod


def encoded(pod: dict[str, Any]) -> bytes:
    return msgspec.json.encode(pod)


def changes(value: Any) -> Iterator[Any]:
    """Give copies of a JSON value, each with one thing in it changed or left out."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield {name: one for name, one in value.items() if name != key}
            yield from ({**value, key: other} for other in changes(item))
    elif isinstance(value, list):
        yield [*value, *value]
        for index, item in enumerate(value):
            yield [*value[:index], *value[index + 1 :]]
            yield from ([*value[:index], other, *value[index + 1 :]] for other in changes(item))
    elif isinstance(value, str):
        yield "7"
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1


def test_a_pod_that_differs_anywhere_is_what_it_would_be_by_itself() -> None:
    base = made(0)
    variants = list(changes(base))
    assert len(variants) > 150
    for one in variants:
        decoder = PodDecoder()
        for raw in (encoded(base), encoded(one), encoded(base)):
            assert TEXT.encode(decoder(raw)) == TEXT.encode(decode_pod(raw))


def test_one_after_another_they_are_what_they_would_be_by_themselves() -> None:
    decoder = PodDecoder()
    for one in changes(made(0)):
        raw = encoded(one)
        assert TEXT.encode(decoder(raw)) == TEXT.encode(decode_pod(raw))


def test_pods_of_a_template_share_what_they_have_in_common() -> None:
    decoder = PodDecoder()
    first, second = (decoder(encoded(made(index))) for index in range(2))
    assert (first.metadata.name, first.spec.node_name) != (second.metadata.name, second.spec.node_name)
    for part in ("labels", "annotations", "owner_references"):
        assert getattr(first.metadata, part) is getattr(second.metadata, part)
    for part in ("containers", "tolerations", "volumes", "affinity", "init_containers", "overhead"):
        assert getattr(first.spec, part) is getattr(second.spec, part)
    for part in ("conditions", "container_statuses"):
        assert getattr(first.status, part) is getattr(second.status, part)


def test_pods_that_are_made_one_by_one_share_what_they_have_in_common_in_their_namespace() -> None:
    decoder = PodDecoder()
    raws = [start.pod(index, f"node-{index}") for index in range(3)]
    for raw in raws:
        del raw["metadata"]["generateName"]
    raws[1]["metadata"]["namespace"] = "other"
    first, other, second = (decoder(encoded(raw)) for raw in raws)
    assert first.spec.containers is second.spec.containers
    assert first.spec.containers is not other.spec.containers
    raws[2]["spec"]["overhead"] = {"cpu": "x"}
    with pytest.raises(ObjectError, match="overhead"):
        decoder(encoded(raws[2]))


@pytest.mark.parametrize(
    "own",
    [
        {"volumes": [{"name": "kube-api-access-1"}]},
        {"affinity": {}},
        {"nodeName": "node-8"},
    ],
)
def test_what_pods_of_a_template_have_of_their_own_keeps_them_from_sharing_nothing_else(own: dict[str, Any]) -> None:
    decoder = PodDecoder()
    first, second = decoder(encoded(made(0))), decoder(encoded(made(1, **own)))
    assert first.spec.containers is second.spec.containers
    assert first.spec.tolerations is second.spec.tolerations


def test_one_pod_more_of_a_template_takes_little_memory() -> None:
    decoder = PodDecoder()
    raws = [encoded(made(index)) for index in range(300)]
    kept = [decoder(raw) for raw in raws[:100]]
    tracemalloc.start()
    kept += [decoder(raw) for raw in raws[100:]]
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < MOST_BYTES * 200


@pytest.mark.parametrize(
    ("spec", "status", "field"),
    [
        ({"containers": [{"name": "a", "resources": {"requests": {"cpu": "x"}}}]}, {}, "spec.containers[0]"),
        ({"overhead": {"cpu": "x"}}, {}, "spec.overhead"),
        ({}, {"containerStatuses": [{"name": "pause", "resources": {"limits": {"cpu": "x"}}}]}, "status.container"),
        ({}, {"allocatedResources": {"cpu": "x"}}, "status.allocatedResources"),
    ],
)
def test_a_malformed_quantity_is_found_in_every_pod_of_a_template(
    spec: dict[str, Any], status: dict[str, Any], field: str
) -> None:
    decoder, broken = PodDecoder(), made(1, **spec)
    broken["status"] |= status
    decoder(encoded(made(0)))
    for _ in range(2):
        with pytest.raises(ObjectError) as caught:
            decoder(encoded(broken))
        assert caught.value.field.startswith(field)
    assert decoder(encoded(made(2))).spec.containers[0].resources.requests["cpu"] == "100m"


def test_templates_of_two_namespaces_are_two() -> None:
    decoder, other = PodDecoder(), made(1)
    other["metadata"]["namespace"] = "shop"
    first, second = decoder(encoded(made(0))), decoder(encoded(other))
    assert first.spec.containers is not second.spec.containers


def test_a_decoder_keeps_no_pod_alive() -> None:
    decoder = PodDecoder()
    gone = ref(decoder(encoded(made(0))))
    gc.collect()
    assert gone() is None
    assert isinstance(decoder(encoded(made(1))), Pod)


def test_a_decoder_knows_a_bounded_number_of_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_decoder, "MOST_TEMPLATES", 3)
    decoder, kept = PodDecoder(), []
    for index in range(8):
        pod = made(index)
        pod["metadata"]["generateName"] = f"web-{index}-"
        kept.append(decoder(encoded(pod)))
        assert len(decoder._last) <= 3
