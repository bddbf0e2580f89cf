"""DeviceTaintRules for generated cases.

A case draws its rules from a random source of its own, so that the rest of the case is the same with and without them.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from .published import DRIVERS, TAINTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Thing: TypeAlias = dict[str, Any]

KIND = "DeviceTaintRule"
NAMES = ("broken", "drained", "watched")


class Rules:
    """Draws rules for the devices of a case."""

    def __init__(self, seed: str, objects: Iterable[Thing]) -> None:
        self._rng = Random(f"{seed}/taint-rules")
        self._devices = [
            (one["spec"]["driver"], one["spec"]["pool"]["name"], device["name"])
            for one in objects
            if one["kind"] == "ResourceSlice"
            for device in one["spec"].get("devices", ())
        ]

    def draw(self, *, is_about_taints: bool) -> list[Thing]:
        """Draw the rules of a case: most have none, unless it is about taints."""
        if self._rng.random() >= (0.7 if is_about_taints else 0.1):
            return []
        return [self._rule(name) for name in NAMES[: self._rng.choice([1, 1, 2, 3])]]

    def change(self, *, is_about_taints: bool) -> list[dict[str, Thing]]:
        """Draw what happens to a rule between two pods of a sequence: mostly nothing."""
        if self._rng.random() >= (0.3 if is_about_taints else 0.02):
            return []
        rule = self._rule(self._rng.choice(NAMES))
        return [{"remove" if self._rng.random() < 0.4 else "set": rule}]

    def _rule(self, name: str) -> Thing:
        rng = self._rng
        taint: Thing = {"key": rng.choice(["broken", "reserved"]), "effect": rng.choice(TAINTS[:-1])}
        if rng.random() < 0.6:
            taint["value"] = rng.choice(["yes", "no"])
        spec: Thing = {"taint": taint | {"timeAdded": "2026-01-01T00:00:00Z"}}
        if rng.random() < 0.95:
            spec["deviceSelector"] = self._selector(self._devices)
        return {"apiVersion": "resource.k8s.io/v1", "kind": KIND, "metadata": {"name": name}, "spec": spec}

    def _selector(self, devices: Sequence[tuple[str, str, str]]) -> Thing:
        """Draw a selector, mostly of a device of the case, which names some parts of its identity."""
        rng = self._rng
        if not devices or rng.random() < 0.1:
            return {"driver": rng.choice([*DRIVERS, "another.example.com"])}
        chosen = zip(("driver", "pool", "device"), rng.choice(devices), strict=True)
        return {part: value for part, value in chosen if rng.random() < 0.6}
