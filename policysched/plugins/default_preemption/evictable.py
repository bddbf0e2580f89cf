"""`Evictable`: pods that preemption may evict on nodes, single pods and pod groups that are evicted as a whole.

A pod group of disruption mode `all` is one victim: for each node with one of its pods, all its placed pods are listed.

Shapes: V listed pods, U victims.
Source: pkg/scheduler/framework/preemption/types.go (getCrossNodesVictims, NewPodVictim), util.go (MoreImportantVictim),
v1.37; victims.go, v1.38.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask, RowNumbers
from policysched.state.placed.pods import pod_id
from policysched.state.pod_groups import GroupState, PodGroups

Slots = NDArray[np.intp]
Ties = tuple[NDArray[np.int32] | NDArray[np.str_], ...]
"""Arrays by which pods are sorted, the most significant last. Shapes: (V,) each."""


@dataclass(frozen=True, slots=True)
class Evictable:
    """Pods that may be evicted; the pods of a victim (one pod or a pod group) are adjacent, in the order of UIDs."""

    slots: Slots
    """The index of each pod in the pod table. Shapes: (V,)."""
    rows: RowNumbers
    """The row number of the node that evicting each pod frees; a group's pod may be on another node. Shapes: (V,)."""
    victims: Slots
    """The number, from 0, of the victim to which each pod belongs. Shapes: (V,)."""
    of_group: Mask
    """Mask of the victims whose importance is compared as that of pod groups. Shapes: (U,)."""

    @classmethod
    def of(cls, cluster: Cluster, slots: Slots, rows: Slots, *, ranks_members: bool) -> Evictable:
        """Return pods as victims: the pods of a group with disruption mode `all` are one victim.

        Args:
            cluster: The cluster.
            slots: Pods of lower priority, by their slots.
            rows: The node that the eviction of each pod is to free; one number for all pods to list each victim once.
            ranks_members: Whether pods of groups that are evicted one by one have the rank of groups.
        """
        if cluster.pod_groups is None or not slots.size:
            return cls(slots, rows, np.arange(slots.size), np.zeros(slots.size, np.bool_))
        members = _slots_of(cluster, cluster.pod_groups)
        alone = np.isin(slots, list(members), invert=True)
        keys = (members[slot].key for slot in slots[~alone].tolist())
        whole = dict.fromkeys(zip(rows[~alone].tolist(), keys, strict=True))
        groups = [(row, _by_uid(cluster, state)) for row, key in whole if (state := cluster.pod_groups.get(key))]
        sizes = [slots_of_group.size for _, slots_of_group in groups]
        single = slots[alone]
        ranked = np.isin(single, _grouped(cluster, cluster.pod_groups)) if ranks_members else np.zeros(single.size)
        return cls(
            np.concatenate((single, *(of_group for _, of_group in groups))),
            np.concatenate((rows[alone], np.repeat([row for row, _ in groups], sizes).astype(np.intp))),
            np.concatenate((np.arange(single.size), single.size + np.repeat(np.arange(len(groups)), sizes))),
            np.concatenate((ranked, np.ones(len(groups)))).astype(np.bool_),
        )

    @property
    def are_single(self) -> bool:
        """Whether every victim is a single pod."""
        return self.of_group.size == self.slots.size

    def without(self, kept: Mask) -> Evictable:
        """Return a copy without the victims that have a pod in the mask `kept`. Shapes: kept (V,)."""
        stays = np.isin(self.victims, self.victims[kept])
        numbers, victims = np.unique(self.victims[~stays], return_inverse=True)
        return Evictable(self.slots[~stays], self.rows[~stays], victims, self.of_group[numbers])

    def order(self, priorities: NDArray[np.int64], starts: NDArray[np.float64], ties: Ties) -> Slots:
        """Return the indices of the pods, sorted by node, then by the importance of their victims.

        Args:
            priorities: The priorities of the pods.
            starts: The start times of the pods.
            ties: The keys of pods of equal priority and start.

        Shapes: (V,) each.
        """
        victims = self.victims
        if self.are_single and not self.of_group.any():
            return np.lexsort((*ties, starts, -priorities, self.rows))
        firsts = np.unique(victims, return_index=True)[1]
        earliest = np.full(self.of_group.size, np.inf)
        np.minimum.at(earliest, victims, starts)
        first_ranks = np.full(self.of_group.size, victims.size)
        np.minimum.at(first_ranks, victims[np.lexsort(ties)], np.arange(victims.size))
        keys = (first_ranks, earliest, -np.bincount(victims), ~self.of_group, -priorities[firsts])
        return np.lexsort((*(key[victims] for key in keys), self.rows))


def _slots_of(cluster: Cluster, groups: PodGroups) -> dict[int, GroupState]:
    """Return pod groups by pod index, for pods on existing nodes in groups of disruption mode `all`."""
    whole = (state for state in groups if state.group is not None and state.group.is_disrupted_as_whole)
    return {slot: state for state in whole for slot in _placed(cluster, state)}


def _grouped(cluster: Cluster, groups: PodGroups) -> list[int]:
    """Return the pod-table indices of the pods of all pod groups, without pods whose node does not exist."""
    return [slot for state in groups for slot in _placed(cluster, state)]


def _placed(cluster: Cluster, state: GroupState) -> Iterable[int]:
    by_id, is_present = cluster.pods.by_id, cluster.nodes.present.data
    placed = (by_id.get(pod_id(pod)) for pod in state.scheduled)
    return (one.slot for one in placed if one is not None and is_present[one.row])


def _by_uid(cluster: Cluster, state: GroupState) -> Slots:
    """Return the pod-table indices of a group's pods in the order of UIDs, without pods whose node does not exist."""
    by_slot = cluster.pods.by_slot
    placed = [one for slot in _placed(cluster, state) if (one := by_slot[slot]) is not None]
    return np.array([one.slot for one in sorted(placed, key=lambda one: one.pod.metadata.uid)], np.intp)
