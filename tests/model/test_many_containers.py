"""Containers that are added up as integers, and one by one: the same sums, whatever they state."""

from __future__ import annotations

import random
from typing import Any

import pytest

from policysched.model import many_containers
from policysched.model import requests as requests_module
from policysched.model.decode import decode_pod
from policysched.model.objects import Pod
from policysched.model.quantity import parse
from policysched.model.requests import DEFAULT_AMOUNTS, incoming_requests, placed_nonzero, placed_requests
from tests.work import lines

USUAL = ("0", "1", "3", "100m", "1500m", "2k", "1Ki", "1.5Gi", "10e3", "0.001", "1T", "3P")
LARGE = ("9223372036854775807", "8Ei", "4Ei", "1E", "10E", "20E", "9.3P", "1e19", "900P", "-8Ei", "1" + "0" * 60)
ODD = ("-1", "100u", "1n", "0.1m", *LARGE)
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/a", "hugepages-2Mi")


def any_pod(chance: random.Random, odd: float) -> Pod:
    """A pod of a few containers of all sorts, some of them being resized."""

    def amounts() -> dict[str, str]:
        chosen = chance.sample(RESOURCES, chance.randint(0, len(RESOURCES)))
        return {name: chance.choice(ODD if chance.random() < odd else USUAL) for name in chosen}

    def containers(kind: str) -> list[dict[str, Any]]:
        made = [
            {"name": f"{kind}{number}", "resources": {"requests": amounts()}} for number in range(chance.randint(0, 4))
        ]
        return [one | ({"restartPolicy": "Always"} if chance.random() < 0.5 else {}) for one in made]

    def statuses(of: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [
            {"name": one["name"], "allocatedResources": amounts()}
            | ({"resources": {"requests": amounts()}} if chance.random() < 0.8 else {})
            for one in of
            if chance.random() < 0.6
        ]

    main, initial = containers("main"), containers("init")
    spec: dict[str, Any] = {"containers": main, "initContainers": initial, "nodeName": "n"}
    if chance.random() < 0.2:
        spec["resources"] = {"requests": {"cpu": chance.choice(USUAL)}}
    if chance.random() < 0.3:
        overhead = chance.choice((USUAL, LARGE))
        spec["overhead"] = {name: chance.choice(overhead) for name in chance.sample(RESOURCES, 3)}
    status: dict[str, Any] = {"containerStatuses": statuses(main), "initContainerStatuses": statuses(initial)}
    if chance.random() < 0.3:
        reason = chance.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return decode_pod({"metadata": {"name": "p", "namespace": "d"}, "spec": spec, "status": status})


@pytest.mark.parametrize("odd", [0.0, 0.05, 0.5])
def test_sums_are_those_of_adding_one_by_one(odd: float, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(f"many containers/{odd}")
    for _ in range(1500):
        one = any_pod(chance, odd)
        for use_status in (False, True):
            for missing in ({}, DEFAULT_AMOUNTS, {"cpu": DEFAULT_AMOUNTS["cpu"]}):
                monkeypatch.setattr(requests_module, "MANY_CONTAINERS", 64)
                apart = requests_module.container_amounts(one, use_status=use_status, missing=missing)
                monkeypatch.setattr(requests_module, "MANY_CONTAINERS", -1)
                together = requests_module.container_amounts(one, use_status=use_status, missing=missing)
                assert together.keys() == apart.keys()
                for name, amount in together.items():
                    assert amount.equals(apart[name]), (name, amount, apart[name])
                    assert parse(amount.text()).equals(apart[name])
                    for exponent in (-3, 0):
                        assert amount.scaled(exponent) == apart[name].scaled(exponent)
        found = {}
        for few in (64, -1):
            monkeypatch.setattr(requests_module, "MANY_CONTAINERS", few)
            found[few] = placed_requests(one), placed_nonzero(one), incoming_requests(one)
        assert found[64] == found[-1]


@pytest.mark.parametrize("overhead", ["10E", "20E", "9.3P", "8Ei", "1"])
def test_overhead_that_overflows_does_so_as_when_all_is_added_one_by_one(
    overhead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    containers = [{"name": f"c{n}", "resources": {"requests": {"memory": "1T", "cpu": "1T"}}} for n in range(65)]
    spec = {"containers": containers, "overhead": {"memory": overhead, "cpu": overhead}}
    found = []
    for few in (64, 65):
        monkeypatch.setattr(requests_module, "MANY_CONTAINERS", few)
        one = decode_pod({"metadata": {"name": "p", "namespace": "d"}, "spec": spec})
        found.append((incoming_requests(one), placed_requests(one), placed_nonzero(one)))
    assert found[0] == found[1]


def test_most_amounts_are_added_up_as_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests_module, "_container_amounts", None)
    containers = [{"name": f"c{n}", "resources": {"requests": {"cpu": f"{n}m", "memory": "1Gi"}}} for n in range(1000)]
    made = decode_pod({"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": containers}})
    assert placed_requests(made).cpu_millis == 499_500
    assert placed_nonzero(made) == (499_500 + 100 - 100, 1000 << 30)


def test_an_odd_amount_has_its_resource_alone_added_up_one_by_one() -> None:
    def work(**odd: str) -> int:
        containers = [
            {"name": f"c{n}", "resources": {"requests": {f"example.com/{r}": f"{n}" for r in range(20)}}}
            for n in range(500)
        ]
        containers[0]["resources"] = {"requests": odd}
        made = decode_pod({"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": containers}})
        return lines(lambda: placed_requests(made))

    many_containers._remembered.cache_clear()
    work(cpu="1")
    assert work(memory="8Ei") < 2.5 * work(memory="1")
