"""Cases about amounts that leave 64 bits, or nearly do, and about pods that name more resources than nodes have.

Takes cases about pods on their own, and puts other quantities into some of their lists.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from .generate import single

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Case: TypeAlias = dict[str, Any]
OF_64_BITS = (
    *("1n", "1m", "1E", "4Ei", "64Pi", "65Pi", "100Pi", "9223372036854775807", "92233720368547758"),
    *("92233720368547759", "4611686018427387904", "9223372036854775807m", "2147483648", "9007199254740993", "0"),
)
AMOUNTS = (*OF_64_BITS, "8Ei", "16Ei", "1e19", "1e30", "9223372036854775808", "18446744073709551615")
"""Pods with pod-level resources get none beyond 64 bits: from 1.37 on, kube-scheduler bounds some of these amounts."""
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "example.com/fpga", "example.com/nowhere")
MANY = 40
"""More resources than a reason code has bits for."""


def extremes(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    """Generate cases with one pod to schedule."""
    for index in indices:
        rng = Random(f"{seed}/extreme/{index}")
        case = single(rng, f"{seed}-x{index}")
        share = rng.choice([0.05, 0.2, 0.6])
        for one in (*case["objects"], case["pod"]):
            if one["kind"] == "Node":
                _change(rng, one["status"], "allocatable", share / 3)
            else:
                _change_pod(rng, one, share)
        if rng.random() < 0.2:
            _name_many(rng, case)
        yield case


def _change_pod(rng: Random, pod: dict[str, Any], share: float) -> None:
    amounts = OF_64_BITS if "resources" in pod["spec"] else AMOUNTS
    for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])):
        if "resources" in container or rng.random() < share:
            _change(rng, container.setdefault("resources", {}), "requests", share, amounts)


def _change(rng: Random, where: dict[str, Any], key: str, share: float, amounts: Sequence[str] = AMOUNTS) -> None:
    if rng.random() < share:
        chosen = rng.sample(RESOURCES, rng.randint(1, 3))
        where[key] = where.get(key, {}) | {name: rng.choice(amounts) for name in chosen}


def _name_many(rng: Random, case: Case) -> None:
    names = [f"example.com/r{number:02}" for number in range(MANY)]
    container = case["pod"]["spec"]["containers"][0].setdefault("resources", {})
    container["requests"] = container.get("requests", {}) | dict.fromkeys(names, "1")
    for one in case["objects"]:
        if one["kind"] == "Node" and "allocatable" in one["status"] and rng.random() < 0.7:
            offered = names if rng.random() < 0.6 else rng.sample(names, rng.randint(1, MANY))
            one["status"]["allocatable"] |= {name: rng.choice(["1", "2", "8Ei", "0"]) for name in offered}
