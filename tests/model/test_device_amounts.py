"""Quantities of the objects that devices depend on: each is looked at, and a malformed one is named with its place."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policysched.app.dry_run.inputs import ClusterSources, gather
from policysched.errors import UsageError
from policysched.model.decode import ObjectError
from policysched.model.device_amounts import distinct_amounts, placed_amounts
from policysched.model.device_decoding import decode_devices
from policysched.model.kinds import KINDS
from policysched.model.objects import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from tests.work import calls

FieldPath = tuple[str | int, ...]
RANGE = {"min": "11", "max": "12", "step": "13"}
POLICY = {"default": "14", "validValues": ["15", "16"], "validRange": RANGE}
DEVICES = [
    {"name": "plain"},
    {
        "name": "d",
        "capacity": {"a.example/memory": {"value": "17", "requestPolicy": POLICY}, "cores": {"value": "18"}},
        "consumesCounters": [{"counterSet": "c"}, {"counterSet": "c", "counters": {"n": {"value": "19"}}}],
    },
]
SLICE = {
    "metadata": {"name": "x"},
    "spec": {
        "driver": "d",
        "devices": DEVICES,
        "sharedCounters": [{"name": "c", "counters": {"n": {"value": "20"}, "m": {"value": "21"}}}],
    },
}
REQUESTS = [
    {"name": "r", "exactly": {"capacity": {"requests": {"memory": "11"}}}},
    {"name": "s", "firstAvailable": [{"name": "t"}, {"name": "u", "capacity": {"requests": {"memory": "12"}}}]},
    {"name": "v", "exactly": {"capacity": {"requests": {"memory": "13"}}}, "firstAvailable": []},
]
SPEC = {"devices": {"requests": REQUESTS}}
RESULTS = [{"request": "r"}, {"request": "s", "consumedCapacity": {"memory": "14", "a.example/x": "15"}}]
CLAIM = {
    "metadata": {"name": "x", "namespace": "n"},
    "spec": SPEC,
    "status": {"allocation": {"devices": {"results": RESULTS}}},
}
TEMPLATE = {"metadata": {"name": "x", "namespace": "n"}, "spec": {"spec": SPEC}}
OBJECTS = {ResourceSlice: SLICE, ResourceClaim: CLAIM, ResourceClaimTemplate: TEMPLATE}


def amounts(value: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Give the paths of the quantities of an object: its texts of digits."""
    if isinstance(value, str) and value.isdigit():
        yield path
    elif isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from amounts(one, (*path, key))


CASES = [(shape, path) for shape, raw in OBJECTS.items() for path in amounts(raw)]


def written(path: FieldPath) -> str:
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)[1:]


@pytest.mark.parametrize(("shape", "path"), CASES, ids=[f"{one.__name__} {written(path)}" for one, path in CASES])
@pytest.mark.parametrize("amount", ["1s", ""])
def test_malformed_quantity_is_refused_with_its_field(shape: Any, path: FieldPath, amount: str) -> None:
    raw = copy.deepcopy(OBJECTS[shape])
    at: Any = raw
    for one in path[:-1]:
        at = at[one]
    at[path[-1]] = amount
    for given in (raw, json.dumps(raw).encode()):
        with pytest.raises(ObjectError, match="quantities must match the regular expression") as caught:
            KINDS[shape.__name__].decode(given)
        assert (caught.value.field, caught.value.key) == (written(path), "x" if shape is ResourceSlice else "n/x")


@pytest.mark.parametrize("shape", OBJECTS, ids=lambda one: one.__name__)
def test_both_ways_see_the_same_quantities(shape: Any) -> None:
    made = decode_devices(shape, json.dumps(OBJECTS[shape]).encode())
    assert distinct_amounts(made) - {None} == {amount for _, amount in placed_amounts(made)} - {None}
    assert len(distinct_amounts(made) - {None}) == sum(one is shape for one, _ in CASES)


def test_many_devices_that_are_alike_are_read_at_once() -> None:
    def decoded(count: int) -> int:
        spec = {"driver": "d", "devices": [DEVICES[1]] * count}
        raw = json.dumps({"metadata": {"name": "x"}, "spec": spec}).encode()
        decode_devices(ResourceSlice, raw)
        return calls(lambda: decode_devices(ResourceSlice, raw), "call")

    assert decoded(128) == decoded(2)


async def test_dry_run_says_where_a_malformed_quantity_stands(tmp_path: Path) -> None:
    cluster, pod = tmp_path / "cluster.yaml", tmp_path / "pod.yaml"
    cluster.write_text(
        "kind: ResourceSlice\nmetadata: {name: s}\nspec:\n  devices:\n  - name: d\n    capacity:\n      a.example/m:\n"
        "        value: 1\n        requestPolicy:\n          validRange:\n            min: 1s\n"
    )
    pod.write_text("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n")
    inputs = await gather(ClusterSources([str(cluster)]), str(pod))
    with pytest.raises(UsageError) as caught:
        inputs.evaluate(())
    place = "spec.devices[0].capacity.a.example/m.requestPolicy.validRange.min"
    assert str(caught.value).startswith(f'{cluster}:11:18: resource slice "s": {place}: quantities must match')
