from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from policysched.kube.object_cache import BURST, LeftOutObjects, ObjectCache
from policysched.model.decode import ObjectError
from policysched.model.kinds import NODES, RESOURCE_CLAIMS
from policysched.model.objects import ResourceClaim
from tests.build import node


def count(registry: CollectorRegistry, kind: str, reason: str) -> float | None:
    return registry.get_sample_value("policysched_objects_left_out_total", {"kind": kind, "reason": reason})


def test_objects_are_counted_by_kind_and_reason_and_named(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    left_out = LeftOutObjects(lambda: 0.0, registry)
    left_out.malformed(ObjectError("Pod", "a/b", "no"))
    left_out.failed("Node", node("n1"), ValueError("boom"))
    assert count(registry, "Pod", "malformed") == count(registry, "Node", "failed") == 1
    assert [one.getMessage() for one in caplog.records] == [
        'left out an object that cannot be used: pod "a/b": no',
        "node \"n1\": left out, because processing it failed: ValueError('boom')",
    ]


def test_many_objects_do_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    registry = CollectorRegistry()
    left_out = LeftOutObjects(lambda: now, registry)
    for number in range(3 * BURST):
        left_out.malformed(ObjectError("Pod", f"a/{number}", "no"))
    assert len(caplog.records) == BURST
    now = 2.0
    for _ in range(5):
        left_out.malformed(ObjectError("Pod", "a/b", "no"))
    assert len(caplog.records) == BURST + 3
    assert f"{2 * BURST} more object(s) were left out" in caplog.text
    assert count(registry, "Pod", "malformed") == 3 * BURST + 5


def test_a_failure_that_nobody_foresaw_is_shown_with_where_it_was(caplog: pytest.LogCaptureFixture) -> None:
    def decode(given: Any) -> Any:
        return list(given)[10_000]

    cache = ObjectCache(replace(NODES, decode=decode), LeftOutObjects(lambda: 0.0).malformed)
    cache.replacement().take([msgspec.Raw(b'{"metadata": {"name": "n1", "resourceVersion": "1"}}')])
    [said] = caplog.records
    assert said.getMessage().endswith("node \"n1\": reading it failed: IndexError('list index out of range')")
    assert "return list(given)[10_000]" in caplog.text


def test_a_malformed_object_is_shown_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    cache = ObjectCache(NODES, LeftOutObjects(lambda: 0.0).malformed)
    cache.replacement().take([msgspec.Raw(b'{"metadata": {"name": "n1", "resourceVersion": "1"}, "spec": 5}')])
    [said] = caplog.records
    assert said.exc_info is None
    assert "Traceback" not in caplog.text


def claim(name: str, version: int, uid: str, **more: Any) -> msgspec.Raw:
    metadata = {"name": name, "namespace": "d", "uid": uid, "resourceVersion": str(version)}
    return msgspec.Raw(msgspec.json.encode({"kind": "ResourceClaim", "metadata": metadata, "spec": {}} | more))


def listed(cache: ObjectCache[ResourceClaim], *raws: msgspec.Raw) -> tuple[list[str], list[str]]:
    """Replace the content of a cache by a list; return the names of changed and of removed objects."""
    taking = cache.replacement()
    taking.take(raws)
    came, gone = taking.finish()
    return [one.metadata.name for one in came], [one.metadata.name for one in gone]


def test_a_claim_whose_uid_another_one_has_is_gone_even_if_the_list_hides_a_name() -> None:
    cache = ObjectCache(RESOURCE_CLAIMS, LeftOutObjects(lambda: 0.0).malformed)
    assert listed(cache, claim("a", 1, "u"), claim("c", 1, "v")) == (["a", "c"], [])
    nameless = msgspec.Raw(b'{"metadata": {"name": 5}}')
    assert listed(cache, claim("b", 2, "u"), nameless) == (["b"], ["a"])
    assert [one.metadata.name for one in cache.objects()] == ["b", "c"]


def test_a_claim_that_cannot_be_read_any_more_stays_unless_another_one_has_its_uid() -> None:
    cache = ObjectCache(RESOURCE_CLAIMS, LeftOutObjects(lambda: 0.0).malformed)
    listed(cache, claim("a", 1, "u"), claim("c", 1, "v"))
    unreadable = (claim("a", 2, "u", spec=5), claim("c", 2, "v", spec=5))
    assert listed(cache, claim("b", 2, "u"), *unreadable) == (["b"], ["a"])
    assert sorted(one.metadata.name for one in cache.objects()) == ["b", "c"]


def test_a_claim_is_told_as_gone_before_another_one_with_its_uid_comes() -> None:
    cache = ObjectCache(RESOURCE_CLAIMS, LeftOutObjects(lambda: 0.0).malformed)
    listed(cache, claim("a", 1, "u"))
    taking = cache.replacement()
    taking.take([claim("b", 2, "u")])
    came, gone = taking.taken()
    assert ([one.metadata.name for one in came], [one.metadata.name for one in gone]) == (["b"], ["a"])
    assert taking.finish() == ([], [])
