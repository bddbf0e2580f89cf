"""`GroupBatch`: all node groups and their pools as arrays, in which claims are evaluated on all groups together.

Shapes: V views, D devices, G groups of nodes, N nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.devices.inventory.columns import Codes
from policysched.devices.inventory.pool_views import NodeGroup, PoolView

Places = NDArray[np.int64]
_IS_USABLE: Final = attrgetter("is_usable")
_MOST_DEVICES: Final = 1 << 20
"""Maximum number of devices in a batch; beyond it, further node groups are left out."""


@dataclass(frozen=True, slots=True)
class GroupBatch:
    """Arrays of the node groups whose pools are all usable, with all devices usable from the nodes.

    Attributes:
        groups: The groups.
        views: The views of their pools, each once.
        devices: The rows of the devices of all views, one view after the other; (D,).
        bounds: The start of each view in `devices`, and the end of the last view; (V + 1,).
        seen: The places of the views of each group, one group after the other.
        seen_bounds: The start of each group in `seen`, and the end of the last group; (G + 1,).
        nodes: The rows of the nodes of all groups; (N,).
        group_of: For each node, the place of its group; (N,).
    """

    groups: list[NodeGroup]
    views: list[PoolView]
    devices: Codes
    bounds: Places
    seen: Places
    seen_bounds: Places
    nodes: Places
    group_of: Places


def batch_of(groups: Iterable[NodeGroup]) -> GroupBatch:
    """Return a batch of the node groups whose pools and devices are all usable, up to a number of devices."""
    chosen = _few_enough(one for one in groups if one.pools and one.reaches_all and all(map(_IS_USABLE, one.views)))
    places: dict[PoolView, int] = {}
    seen = [places.setdefault(view, len(places)) for one in chosen for view in one.views]
    devices = [view.rows for view in places]
    sizes = [len(one.rows) for one in chosen]
    return GroupBatch(
        groups=chosen,
        views=list(places),
        devices=np.concatenate(devices) if devices else np.zeros(0, np.int32),
        bounds=_bounds(map(len, devices)),
        seen=np.array(seen, np.int64),
        seen_bounds=_bounds(len(one.pools) for one in chosen),
        nodes=np.fromiter(chain.from_iterable(one.rows for one in chosen), np.int64, sum(sizes)),
        group_of=np.repeat(np.arange(len(chosen)), sizes),
    )


def _few_enough(groups: Iterable[NodeGroup]) -> list[NodeGroup]:
    chosen: list[NodeGroup] = []
    views: set[PoolView] = set()
    devices = 0
    for one in groups:
        fresh = [view for view in one.views if view not in views]
        devices += sum([view.size for view in fresh])
        if devices > _MOST_DEVICES:
            break
        views.update(fresh)
        chosen.append(one)
    return chosen


def _bounds(sizes: Iterable[int]) -> Places:
    return np.fromiter(accumulate(sizes, initial=0), np.int64)
