"""VolumeBinding asked about three nodes: a and b in zones of their names, c in none."""

from __future__ import annotations

from typing import Any

from policysched.framework import Status, unresolvable
from policysched.plugins.volumes.volume_binding import VolumeBinding
from policysched.plugins.volumes.volume_rows import REASONS
from tests.build import node
from tests.plugins.ask import filtered
from tests.plugins.stored import ZONE, claiming, storage_class, with_storage

PLUGIN = VolumeBinding()
NODES = (node("a", labels={ZONE: "a"}), node("b", labels={ZONE: "b"}), node("c"))
WAIT = storage_class()
STATIC = storage_class("static", provisioner="kubernetes.io/no-provisioner")


def said(*bits: int) -> Status:
    return unresolvable(*(REASONS[bit] for bit in sorted(bits)))


def at(*zones: str) -> dict[str, list[str]]:
    return {ZONE: list(zones)}


def verdicts(*objects: Any, of: Any = None) -> Any:
    return filtered(PLUGIN, of or claiming("p", "c"), with_storage(*NODES, *objects))
