"""What cases about volumes are mostly about, and the configurations that enable the plugins of volumes.

Knows nothing of objects: a focus says how often they are of a kind that makes its plugin speak and the others silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import configs

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class Focus:
    """What a case is mostly about: how often things are that make its plugin speak, and others be silent."""

    affine: float = 0.7
    """Volumes with a node affinity."""
    labelled: float = 0.25
    """Volumes with labels of zones."""
    claimed: float = 0.7
    """Volumes of pods that are claims."""
    bound: float = 0.5
    """Claims of pods that are bound ones."""
    one_pod: float = 0.25
    """Claims for one pod alone."""
    drivers: float = 0.5
    """Drivers on nodes."""
    csi_nodes: float = 0.7
    """Nodes with a CSINode object."""
    limits: tuple[int, ...] = (0, 1, 1, 2, 2, 3, 5)
    residents: tuple[int, ...] = (0, 3, 8, 20)


FOCUSES = {
    "VolumeBinding": Focus(),
    "VolumeRestrictions": Focus(
        affine=0.1, labelled=0.05, claimed=0.5, bound=0.95, one_pod=0.9, limits=(9,), residents=(20, 40)
    ),
    "VolumeZone": Focus(affine=0.1, labelled=0.85, bound=0.95, claimed=0.9, limits=(9,), residents=(0, 3)),
    "NodeVolumeLimits": Focus(
        affine=0.1,
        labelled=0.05,
        claimed=0.9,
        bound=0.9,
        one_pod=0.05,
        drivers=0.95,
        csi_nodes=0.95,
        limits=(0, 0, 1, 1),
        residents=(20, 40),
    ),
}
PLUGINS = tuple(FOCUSES)


def configuration(rng: Random) -> dict[str, Any]:
    """Enable the plugins of volumes, now and then only some of them."""
    config = configs.variant(rng) if rng.random() < 0.03 else configs.base()
    off = {rng.choice(PLUGINS)} if rng.random() < 0.08 else set()
    disabled = config["profiles"][0]["plugins"]["multiPoint"]["disabled"]
    disabled[:] = [entry for entry in disabled if entry["name"] not in PLUGINS or entry["name"] in off]
    return config
