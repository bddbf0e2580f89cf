"""`DeviceTables`: slices, device classes and nodes in the form that the allocator reads; changes update it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from policysched.devices.inventory.allocated import AllocatedState, PoolId
from policysched.devices.inventory.columns import DeviceColumns
from policysched.devices.inventory.known_nodes import KnownNode, KnownNodes
from policysched.devices.inventory.node_groups import MovedLog, NodeGroups, SightChanges
from policysched.devices.inventory.pool_views import NodeGroup, SeenPool
from policysched.devices.inventory.pools import Pool
from policysched.devices.inventory.reach import Reach
from policysched.devices.inventory.row_bits import Parted, bits_of, rows_of
from policysched.devices.inventory.slices import KeptSlice, LabelValue, keep
from policysched.devices.inventory.unusable_pools import UnusablePools
from policysched.model.objects import DeviceClass, ResourceSlice
from policysched.model.release import DEFAULT, Release

_MOST_CHANGED: Final = 8
"""Number of changed pools or nodes at which the node groups are updated at once instead of by the next evaluation."""
_WIDE_A_CHANGE: Final = 8
"""Number of pools with many nodes for which `_MOST_CHANGED` is raised by 1, because their updates take longer."""
_FEW_ROWS: Final = 8
"""Number of nodes up to which nodes are handled one by one instead of as a bit set."""
_SELECTORS_A_ROW: Final = 4
"""Number of node selectors that are evaluated on all nodes in the time in which one node is handled separately."""


class DeviceTables:
    """The devices of a cluster by pool, with the nodes that can use them.

    Nodes have the row numbers of the cluster's columns. Slices, classes, nodes and `allocated` can change in any order
    at any time between two evaluations; an `Allocator` reads the changes by itself.

    Args:
        allocated: The allocated devices.
        release: The Kubernetes release whose allocator is reproduced.

    Attributes:
        allocated: The allocated devices.
        release: The Kubernetes release whose allocator is reproduced.
        classes: The device classes by name.
        classes_stamp: A number that grows with each change of a class.
        columns: The devices.
        row_count: The highest row that ever had a node, plus 1.
        groups: The groups of nodes that see the same pools.
        moved: The log of groups to evaluate again.
        unusable: Pools that every node sees and none can use.
        answered: Number of changes of answers for any claims.
        prepared: The cached claim specs, the most recently used last.
    """

    def __init__(self, allocated: AllocatedState | None = None, release: Release = DEFAULT) -> None:
        self.release = release
        self.allocated = allocated if allocated is not None else AllocatedState()
        self.classes: dict[str, DeviceClass] = {}
        self.classes_stamp = 0
        self._changes = 0
        self.columns = DeviceColumns(reads_lists=release.selectors_follow_cel_0_29)
        self._slices: dict[str, KeptSlice] = {}
        self._pools: dict[PoolId, Pool] = {}
        self._wide: set[PoolId] = set()
        self.unusable = UnusablePools()
        self._local: dict[str, set[PoolId]] = {}
        self._nodes = KnownNodes()
        self.prepared: dict[bytes, object] = {}
        self.moved = MovedLog(self.prepared)
        self.groups = NodeGroups(self.moved)
        self._stale: dict[PoolId, set[str] | None] = {}
        """Pools that changed since the last update, each with the nodes that may see it differently; None for all."""
        self._fresh: set[int] = set()
        """The row numbers of nodes that were added or relabelled since the last update."""
        self._seen = self.allocated.stamp
        self.row_count = 0
        self.answered = 0

    @property
    def stamp(self) -> int:
        """A number that increases with each change of a slice, device class, node or allocation."""
        return self._changes + self.allocated.stamp

    def set_slice(self, one: ResourceSlice) -> None:
        """Add a slice, or replace the slice of the same name.

        Raises:
            QuantityError: An amount is malformed; nothing changes.
        """
        kept = keep(one, self.columns, self.release)
        self._changes += 1
        before = self._slices.get(kept.name)
        if before is not None and before.pool != kept.pool:
            self._take_out(before)
            before = None
        pool = self._pools.setdefault(kept.pool, self._new_pool(kept.pool))
        self._mark(pool, before, kept)
        pool.add(kept, self.allocated.of(kept.pool))
        if before is not None:
            self.columns.remove(before.start, len(before.devices))
            self._index(before, pool)
        self._slices[kept.name] = kept
        self._index(kept, pool)
        self._update_after_many_changes()

    def _new_pool(self, identity: PoolId) -> Pool:
        return Pool(identity, self.columns, empty_shares_count=self.release.empty_shares_count)

    def remove_slice(self, name: str) -> None:
        """Remove the slice with the given name."""
        one = self._slices.get(name)
        if one is not None:
            self._changes += 1
            self._take_out(one)

    def set_class(self, one: DeviceClass) -> None:
        """Add a device class, or replace the device class of the same name."""
        self.classes[one.metadata.name] = one
        self.classes_stamp += 1
        self._changes += 1

    def remove_class(self, name: str) -> None:
        """Remove the device class with the given name."""
        self.classes.pop(name, None)
        self.classes_stamp += 1
        self._changes += 1

    def set_node(self, row: int, name: str, labels: Mapping[str, str]) -> None:
        """Add or update a node, by its row number, with its labels."""
        self._changes += 1
        known = self._nodes.by_row.get(row)
        if known is not None and known.name == name:
            if known.labels == labels:
                return
            self._nodes.relabel(row, labels)
        else:
            if known is not None:
                self.remove_node(row)
            self._nodes.add(row, KnownNode(name, labels, self.groups.join(1 << row, ())))
            if row >= self.row_count:
                self.row_count = row + 1
        self._fresh.add(row)
        self._update_after_many_changes()

    def remove_node(self, row: int) -> None:
        """Remove the node with the given row number."""
        self._changes += 1
        known = self._nodes.remove(row)
        self._fresh.discard(row)
        if known is not None:
            self.groups.leave(1 << row, known.group)
            self._forget_unseen()

    def node(self, row: int) -> tuple[str, NodeGroup]:
        """Return the name and the node group of the node with the given row number.

        Raises:
            KeyError: The row has no node.
        """
        known = self._nodes.by_row[row]
        return known.name, known.group

    def refresh(self) -> None:
        """Update the node groups and the allocated devices of pools after changes."""
        if self._stale or self._fresh:
            self._update_groups()
        if self._seen != self.allocated.stamp:
            self._update_allocations()

    # Slices

    def _take_out(self, one: KeptSlice) -> None:
        pool = self._pools[one.pool]
        self._mark(pool, one, None)
        pool.remove(one.name)
        self.columns.remove(one.start, len(one.devices))
        del self._slices[one.name]
        self._index(one, pool)

    def _mark(self, pool: Pool, before: KeptSlice | None, after: KeptSlice | None) -> None:
        """Record the nodes that may see a pool differently after a slice of the pool changed."""
        changed = [one for one in (before, after) if one is not None]
        identity = changed[0].pool
        stale = self._stale.setdefault(identity, set())
        if stale is None:
            return
        in_place = before is not None and after is not None and before.generation == after.generation
        is_alone = in_place and not pool.has_counters and not any(one.counts for one in changed)
        if is_alone and all(one.local_to for one in changed):
            stale.update(one.local_to for one in changed)
        else:
            self._stale[identity] = None

    def _index(self, one: KeptSlice, pool: Pool) -> None:
        """Update the index of pools by node name after a slice was added to or removed from a pool."""
        if not one.local_to:
            return
        if one.local_to in pool.nodes:
            self._local.setdefault(one.local_to, set()).add(one.pool)
        elif one.local_to in self._local:
            self._local[one.local_to].discard(one.pool)
            if not self._local[one.local_to]:
                del self._local[one.local_to]

    # Nodes

    def _update_after_many_changes(self) -> None:
        """Update the node groups before the next evaluation if many changes are pending, as at startup."""
        if max(len(self._stale), len(self._fresh)) > _MOST_CHANGED + len(self._wide) // _WIDE_A_CHANGE:
            self._update_groups()

    def _update_groups(self) -> None:
        """Recompute how all nodes see changed pools, and how changed nodes see all pools."""
        stale, self._stale = self._stale, {}
        fresh, self._fresh = self._fresh, set()
        changes = SightChanges()
        rows_of_fresh = bits_of(fresh)
        for identity, nodes in stale.items():
            self._note_sights(changes, identity, self._affected(identity, self._pools[identity], nodes))
        for identity in self._wide if fresh else ():
            self._note_sights(changes, identity, rows_of_fresh)
        for row in fresh:
            for identity in self._local.get(self._nodes.by_row[row].name, ()):
                self._note_sights(changes, identity, 1 << row)
        for rows, group, changed in changes:
            joined = self.groups.join(rows, group.with_pools(changed))
            for row in rows_of(rows):
                self._nodes.by_row[row].group = joined
            self.groups.leave(rows, group)
        self._forget_unseen()
        self._forget_views(stale)

    def _forget_unseen(self) -> None:
        """Drop the pool views (pools as some nodes see them) that no node group has any more."""
        for view in self.groups.unseen():
            self._pools[view.pool].forget(view)

    def _forget_views(self, stale: Iterable[PoolId]) -> None:
        """Drop the unused views of changed pools, and changed pools that have no slices."""
        for identity in stale:
            pool = self._pools[identity]
            for view in [one for one in pool.views.values() if not one.groups]:
                pool.forget(view)
            if not pool:
                del self._pools[identity]

    def _groups_of(self, rows: int) -> Collection[NodeGroup]:
        """Return the node groups that contain any of the given nodes (a bit set)."""
        nodes = self._nodes.by_row
        few = rows.bit_count() <= len(self.groups.all)
        return {nodes[row].group: None for row in rows_of(rows)} if few else self.groups.among(rows)

    def _note_sights(self, changes: SightChanges, identity: PoolId, rows: int) -> None:
        """Record which of the given nodes see a pool differently than before."""
        nodes = self._nodes.by_row
        for seen, together in self._sights(identity, self._pools[identity], rows):
            if together.bit_count() <= _FEW_ROWS:
                for row in rows_of(together):
                    group = nodes[row].group
                    if seen != group.seen(identity):
                        changes.row(row, group, identity, seen)
                continue
            for group in self._groups_of(together):
                if seen != group.seen(identity):
                    changes.part(together, group, identity, seen)

    def _sights(self, identity: PoolId, pool: Pool, rows: int) -> Iterator[tuple[SeenPool | None, int]]:
        """Yield sets of nodes that see a pool alike, each with the pool as they see it."""
        nodes = self._nodes.by_row
        count = rows.bit_count()
        if count <= _FEW_ROWS or count <= len(pool.reach.selectors) // _SELECTORS_A_ROW:
            for row in rows_of(rows):
                yield self._seen_by(nodes[row], identity), 1 << row
            return
        reach, taken = pool.reach, self.allocated.of(identity)
        own = self._nodes.named((*pool.nodes, *reach.by_name)) if pool.nodes or reach.by_name else 0
        for numbers, node, together in self._numbers(reach, rows & own, rows):
            if node is not None:
                yield self._seen_by(node, identity, numbers), together
            else:
                yield None if identity in self.unusable else pool.seen_as(numbers, "", {}, taken), together

    def _numbers(self, reach: Reach, own: int, rows: int) -> Iterator[tuple[Mapping[int, int], KnownNode | None, int]]:
        """Yield sets of nodes with the slices and devices that they can use; each node in `own` is a set by itself."""
        parted = Parted(rows, [self._nodes.selected(one) for one in reach.selectors])
        mostly = reach.numbers(parted.mostly)
        for part, otherwise in parted.parts:
            for row in rows_of(part & own) if own else ():
                node = self._nodes.by_row[row]
                yield reach.otherwise(mostly, otherwise, node.name), node, 1 << row
            if part & ~own:
                yield reach.otherwise(mostly, otherwise), None, part & ~own

    def _affected(self, identity: PoolId, pool: Pool, nodes: set[str] | None) -> int:
        if nodes is not None:
            return self._nodes.named(nodes)
        was_wide = identity in self._wide
        seen = None if pool.depends_on_nodes else pool.seen_from_elsewhere(self.allocated.of(identity))
        is_wide = pool.depends_on_nodes or (seen is not None and seen.view.is_usable)
        (self._wide.add if is_wide else self._wide.discard)(identity)
        self.unusable.set(identity, None if is_wide else seen)
        demands = pool.demands if pool.depends_on_nodes else None
        if demands is not None and pool.seen_from_elsewhere(self.allocated.of(identity)) is not None:
            demands = None  # nodes see the pool regardless of their labels
        if demands is None and (was_wide or is_wide):
            return self._nodes.all
        affected = self._nodes.named(pool.nodes)
        for view in pool.views.values():
            for group in view.groups:
                affected |= group.bits
        for label, values in _by_label(demands or ()).items():
            affected |= self._nodes.having(label, values)
        return affected

    def _seen_by(self, node: KnownNode, identity: PoolId, numbers: Mapping[int, int] | None = None) -> SeenPool | None:
        """Return a pool as a node sees it now; `numbers` are the node's `Reach` numbers, or None to compute them."""
        pool = self._pools[identity]
        if identity in self.unusable and node.name not in pool.nodes:
            return None
        taken = self.allocated.of(identity)
        if numbers is None:
            seen = pool.seen_from(node.name, node.labels, taken)
        else:
            seen = pool.seen_as(numbers, node.name, node.labels, taken)
        return pool.unnoticed(taken) if seen is None and identity in self.unusable else seen

    # Allocations

    def _update_allocations(self) -> None:
        changes, self._seen = self.allocated.changed_since(self._seen), self.allocated.stamp
        if changes is None:
            for identity, pool in self._pools.items():
                pool.take(self.allocated.of(identity))
                for view in pool.views.values():
                    self.moved.note(view)
            return
        devices: dict[PoolId, dict[str, None]] = {}
        for identity, device in changes:
            devices.setdefault(identity, {})[device] = None
        for identity, some in devices.items():
            known = self._pools.get(identity)
            for view in known.retake(some, self.allocated.of(identity)) if known is not None else ():
                self.moved.note(view)


def _by_label(demands: Iterable[LabelValue]) -> dict[str, list[str]]:
    """Return required label values grouped by label."""
    found: dict[str, list[str]] = {}
    for label, value in demands:
        found.setdefault(label, []).append(value)
    return found
