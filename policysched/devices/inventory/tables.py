"""Slices, classes and nodes as the allocator reads them, kept up to date one change at a time."""

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

_MOST_CHANGED: Final = 8
"""How many pools or nodes that changed are left to the next question, besides a part of the pools that many see."""
_WIDE_A_CHANGE: Final = 8
"""For so many pools that many nodes see one more change is left: nodes are put into groups by all that they see."""
_FEW_ROWS: Final = 8
"""Up to how many rows are looked at one by one."""
_SELECTORS_A_ROW: Final = 4
"""So many selectors are asked about all nodes in the time that one row takes at most that is looked at by itself."""


class DeviceTables:
    """The devices of a cluster by pool, and which nodes can reach them.

    Nodes have the row numbers that the caller gives them, those of the cluster's columns. Slices, classes, nodes and
    `allocated` may be changed in any order, at any time between two questions; an `Allocator` catches up by itself.

    Attributes:
        allocated: What claims have taken.
        classes: The device classes by name.
        classes_revision: A number that grows with each change of a class.
        columns: The devices.
        row_count: One more than the highest row that ever had a node.
        groups: The nodes, those together that see the same pools.
        moved: Which groups have to be asked again.
        unusable: Pools that no node can use and that every node sees.
        answered: How often anything else than before was answered about any claims.
        prepared: What was found out about claims, by their specs; those that were asked about last come last.
    """

    def __init__(self, allocated: AllocatedState | None = None) -> None:
        self.allocated = allocated if allocated is not None else AllocatedState()
        self.classes: dict[str, DeviceClass] = {}
        self.classes_revision = 0
        self._changes = 0
        self.columns = DeviceColumns()
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
        """Pools that changed since it was worked out what nodes see, and which nodes may see them otherwise."""
        self._replaced: dict[PoolId, dict[str, KeptSlice]] = {}
        """Of those pools the slices as they were, by name, that labels choose nodes for and that were replaced."""
        self._fresh: set[int] = set()
        """The rows whose nodes came, or got other labels, since it was worked out what nodes see."""
        self._seen = self.allocated.revision
        self.row_count = 0
        self.answered = 0

    @property
    def revision(self) -> int:
        """A number that grows with each change of anything."""
        return self._changes + self.allocated.revision

    def set_slice(self, one: ResourceSlice) -> None:
        """Add a slice, or replace the one of its name.

        Raises:
            QuantityError: an amount is malformed; nothing is changed then.
        """
        kept = keep(one, self.columns)
        self._changes += 1
        before = self._slices.get(kept.name)
        if before is not None and before.pool != kept.pool:
            self._take_out(before)
            before = None
        pool = self._pools.setdefault(kept.pool, Pool(kept.pool, self.columns))
        self._mark(pool, before, kept)
        pool.add(kept, self.allocated.of(kept.pool))
        if before is not None:
            self.columns.remove(before.start, len(before.devices))
            self._index(before, pool)
        self._slices[kept.name] = kept
        self._index(kept, pool)
        self._look_where_much_changed()

    def remove_slice(self, name: str) -> None:
        """Take a slice away."""
        one = self._slices.get(name)
        if one is not None:
            self._changes += 1
            self._take_out(one)

    def set_class(self, one: DeviceClass) -> None:
        """Add a device class, or replace the one of its name."""
        self.classes[one.metadata.name] = one
        self.classes_revision += 1
        self._changes += 1

    def remove_class(self, name: str) -> None:
        """Take a device class away."""
        self.classes.pop(name, None)
        self.classes_revision += 1
        self._changes += 1

    def set_node(self, row: int, name: str, labels: Mapping[str, str]) -> None:
        """Say which node a row is, and its labels."""
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
        self._look_where_much_changed()

    def remove_node(self, row: int) -> None:
        """Say that no node is at a row any more."""
        self._changes += 1
        known = self._nodes.remove(row)
        self._fresh.discard(row)
        if known is not None:
            self.groups.leave(1 << row, known.group)
            self._forget_unseen()

    def node(self, row: int) -> tuple[str, NodeGroup]:
        """Return a node's name and the group that it is in.

        Raises:
            KeyError: no node is at the row.
        """
        known = self._nodes.by_row[row]
        return known.name, known.group

    def refresh(self) -> None:
        """Work out what changed since the last time: which nodes see which pools, and what is taken of those."""
        if self._stale or self._fresh:
            self._look_again()
        if self._seen != self.allocated.revision:
            self._take_over_allocations()

    # Slices

    def _take_out(self, one: KeptSlice) -> None:
        pool = self._pools[one.pool]
        self._mark(pool, one, None)
        pool.remove(one.name)
        self.columns.remove(one.start, len(one.devices))
        del self._slices[one.name]
        self._index(one, pool)

    def _mark(self, pool: Pool, before: KeptSlice | None, after: KeptSlice | None) -> None:
        """Note which nodes may see a pool otherwise after a slice changes, None for all of them."""
        changed = [one for one in (before, after) if one is not None]
        identity = changed[0].pool
        stale = self._stale.setdefault(identity, set())
        if stale is None:
            return
        in_place = before is not None and after is not None and before.generation == after.generation
        if in_place and not pool.has_counters and not any(one.counts for one in changed):
            if all(one.local_to for one in changed):
                stale.update(one.local_to for one in changed)
                return
            if before is not None and all(one.is_selective for one in changed):
                self._replaced.setdefault(identity, {}).setdefault(before.name, before)
                return
        self._stale[identity] = None

    def _index(self, one: KeptSlice, pool: Pool) -> None:
        """Note whether a pool still has slices of a slice's node."""
        if not one.local_to:
            return
        if one.local_to in pool.nodes:
            self._local.setdefault(one.local_to, set()).add(one.pool)
        elif one.local_to in self._local:
            self._local[one.local_to].discard(one.pool)
            if not self._local[one.local_to]:
                del self._local[one.local_to]

    # Nodes

    def _look_where_much_changed(self) -> None:
        """Work out what nodes see while they and slices are listed: no claim waits for it then."""
        if max(len(self._stale), len(self._fresh)) > _MOST_CHANGED + len(self._wide) // _WIDE_A_CHANGE:
            self._look_again()

    def _look_again(self) -> None:
        """Find out how nodes see the pools that changed, and how nodes that changed see all pools."""
        stale, self._stale = self._stale, {}
        replaced, self._replaced = self._replaced, {}
        fresh, self._fresh = self._fresh, set()
        changes = SightChanges()
        rows_of_fresh = bits_of(fresh)
        for identity, nodes in stale.items():
            pool, before = self._pools[identity], replaced.get(identity, {}) if nodes is not None else {}
            if before and pool.can_replace(before):
                self._note_replaced(changes, identity, before, self._nodes.all & ~rows_of_fresh)
                before = {}
            self._note_sights(changes, identity, self._affected(identity, pool, None if before else nodes))
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
        """Drop views that nodes saw and none sees any more."""
        for view in self.groups.unseen():
            self._pools[view.pool].forget(view)

    def _forget_views(self, stale: Iterable[PoolId]) -> None:
        """Drop what no node sees of pools that changed."""
        for identity in stale:
            pool = self._pools[identity]
            for view in [one for one in pool.views.values() if not one.groups]:
                pool.forget(view)
            if not pool:
                del self._pools[identity]

    def _note_replaced(
        self, changes: SightChanges, identity: PoolId, replaced: Mapping[str, KeptSlice], rows: int
    ) -> None:
        """Note which of some rows see a pool otherwise of which slices were replaced; they see the others as before."""
        pool, taken, gone = self._pools[identity], self.allocated.of(identity), {*replaced.values()}
        seeing = [view for view in pool.views.values() if not gone.isdisjoint(view.slices)]
        before = 0
        for group in {group for view in seeing for group in view.groups}:
            before |= group.bits
        reach = Reach([pool.slice(name) for name in replaced], ())
        for told, node, part in self._told(reach, self._nodes.named(reach.by_name), rows):
            reached = reach.reached(told)
            together = part if reached else part & before
            for group in [node.group] if node is not None else self._groups_of(together):
                then = group.seen(identity)
                seen = pool.seen_otherwise(then, gone, reached, taken)
                if seen != then:
                    changes.part(together, group, identity, seen)

    def _groups_of(self, rows: int) -> Collection[NodeGroup]:
        """Return the groups that some rows are in."""
        nodes = self._nodes.by_row
        few = rows.bit_count() <= len(self.groups.all)
        return {nodes[row].group: None for row in rows_of(rows)} if few else self.groups.among(rows)

    def _note_sights(self, changes: SightChanges, identity: PoolId, rows: int) -> None:
        """Note which of some rows see a pool otherwise than before."""
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
        """Go through what rows see of a pool: many rows by what selectors say of all nodes, few one by one."""
        nodes = self._nodes.by_row
        count = rows.bit_count()
        if count <= _FEW_ROWS or count <= len(pool.reach.selectors) // _SELECTORS_A_ROW:
            for row in rows_of(rows):
                yield self._seen_by(nodes[row], identity), 1 << row
            return
        reach, taken = pool.reach, self.allocated.of(identity)
        own = self._nodes.named((*pool.nodes, *reach.by_name)) if pool.nodes or reach.by_name else 0
        for told, node, together in self._told(reach, rows & own, rows):
            if node is not None:
                yield self._seen_by(node, identity, told), together
            else:
                yield None if identity in self.unusable else pool.seen_as(told, "", {}, taken), together

    def _told(self, reach: Reach, own: int, rows: int) -> Iterator[tuple[Mapping[int, int], KnownNode | None, int]]:
        """Go through what selectors and names say of slices: of rows together, and by itself of each row in `own`."""
        parted = Parted(rows, [self._nodes.selected(one) for one in reach.selectors])
        mostly = reach.told(parted.mostly)
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
            demands = None  # nodes see it whatever their labels are
        if demands is None and (was_wide or is_wide):
            return self._nodes.all
        affected = self._nodes.named(pool.nodes)
        for view in pool.views.values():
            for group in view.groups:
                affected |= group.bits
        for label, values in _by_label(demands or ()).items():
            affected |= self._nodes.having(label, values)
        return affected

    def _seen_by(self, node: KnownNode, identity: PoolId, told: Mapping[int, int] | None = None) -> SeenPool | None:
        """Return a pool as a node sees it now; `told` is what the pool's `reach` tells of the node, if known."""
        pool = self._pools[identity]
        if identity in self.unusable and node.name not in pool.nodes:
            return None
        taken = self.allocated.of(identity)
        if told is None:
            seen = pool.seen_from(node.name, node.labels, taken)
        else:
            seen = pool.seen_as(told, node.name, node.labels, taken)
        return pool.unnoticed(taken) if seen is None and identity in self.unusable else seen

    # Allocations

    def _take_over_allocations(self) -> None:
        changes, self._seen = self.allocated.changed_since(self._seen), self.allocated.revision
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
    """Put the values of each label together."""
    found: dict[str, list[str]] = {}
    for label, value in demands:
        found.setdefault(label, []).append(value)
    return found
