"""The places of generated nodes: hosts, racks, zones and regions, and what is wrong with some of them.

Knows nothing of pods. Whether labels are missing, empty or shared is drawn once a case: in most clusters
all is well, and one where something is wrong should show it on several nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
RACK = "example.com/rack"
POOL = "example.com/pool"
"""A label by which pods are kept to a part of the nodes."""
NOWHERE = "example.com/nowhere"
KEYS = [ZONE, HOST, RACK, REGION, NOWHERE]
SHARES = [14, 8, 5, 3, 1]


def node_count(rng: Random) -> int:
    """Draw a cluster size: mostly between three and forty nodes, seldom four hundred."""
    low, high = rng.choices([(1, 2), (3, 12), (13, 40), (41, 120), (380, 400)], [60, 500, 350, 60, 8])[0]
    return rng.randint(low, high)


def key(rng: Random) -> str:
    """Draw the topology key of a rule; one of a few hundred is empty, which the API server would refuse."""
    return "" if rng.random() < 0.004 else rng.choices(KEYS, SHARES)[0]


@dataclass(frozen=True, slots=True)
class Topology:
    """How the nodes of one case are labelled.

    `missing` is how often a label is left out, `shared` how often a node carries the host name of another.
    """

    zones: list[str]
    racks: int
    missing: float
    shared: float

    def labels(self, rng: Random, node: str, number: int) -> dict[str, str]:
        """Label a node; zones and racks take turns, so that no place is empty by chance."""
        zone = number % len(self.zones)
        found = {
            HOST: f"host-{rng.randint(0, 3)}" if rng.random() < self.shared else node,
            ZONE: self.zones[zone],
            REGION: f"region-{zone // 2}",
            RACK: f"rack-{number % self.racks}",
            POOL: rng.choice("aab"),
        }
        return {label: value for label, value in found.items() if rng.random() >= self.missing}


def topology(rng: Random, nodes: int) -> Topology:
    """Draw how a case's nodes are labelled; large clusters have more zones."""
    most = 4 if nodes < 100 else 10
    zones = [f"zone-{number}" for number in range(rng.randint(1, most))]
    if rng.random() < 0.1:
        zones[rng.randrange(len(zones))] = ""
    return Topology(
        zones=zones,
        racks=rng.randint(2, 12),
        missing=rng.choice([0.0, 0.0, 0.0, 0.1, 0.35]),
        shared=rng.choice([0.0, 0.0, 0.0, 0.0, 0.3]),
    )
