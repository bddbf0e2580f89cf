"""Slices, classes and nodes as the allocator reads them, kept up to date one change at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from policysched.devices.inventory.allocated import AllocatedState, PoolId
from policysched.devices.inventory.batch import GroupBatch, batch_of
from policysched.devices.inventory.columns import NOBODY, DeviceColumns
from policysched.devices.inventory.pools import NodeGroup, Pool, PoolView, SeenPool
from policysched.devices.inventory.slices import KeptSlice, keep
from policysched.devices.inventory.unusable_pools import UnusablePools
from policysched.late_dataclass import dataclass
from policysched.model.objects import DeviceClass, ResourceSlice
from policysched.model.selection.node_selectors import NodeSelectorMatcher

_MOST_REMEMBERED: Final = 50_000
"""How many moves of nodes are remembered one by one."""
_MOST_CHANGED: Final = 8
"""How many pools or nodes that changed are left to the next question, besides a part of the pools that many see."""
_WIDE_A_CHANGE: Final = 8
"""For so many pools that many nodes see one more change is left: nodes are put into groups by all that they see."""
_FEW_ROWS: Final = 8
"""Up to how many rows are looked at one by one."""
_MOST_SELECTORS: Final = 256
"""Of how many selectors of slices the rows are remembered that they select."""


@dataclass(slots=True)
class _SeenNode:
    name: str
    labels: Mapping[str, str]
    group: NodeGroup


_Seen = dict[PoolId, SeenPool | None]
"""Pools, as some rows see them otherwise than before."""


class _Changes:
    """Which rows see pools otherwise than before: parts of groups, and rows that were looked at one by one."""

    def __init__(self) -> None:
        self.of_rows: dict[int, _Seen] = {}
        self._parts: dict[NodeGroup, list[tuple[set[int], _Seen]]] = {}

    def part(self, group: NodeGroup, identity: PoolId, seen: SeenPool | None, rows: set[int]) -> None:
        """Part a group by which of its rows are among those that see a pool otherwise."""
        after: list[tuple[set[int], _Seen]] = []
        for part, changed in self._parts.get(group) or [(set(group.rows), {})]:
            hit = part & rows
            if len(hit) < len(part):
                after.append((part - hit, changed))
            if hit:
                after.append((hit, {**changed, identity: seen}))
        self._parts[group] = after

    def taken_out(self, row: int, group: NodeGroup) -> _Seen:
        """Take a row out of the parts of its group, and return what changed for its part."""
        for rows, changed in self._parts.get(group, ()):
            if row in rows:
                rows.discard(row)
                return changed
        return {}

    def of_parts(self) -> Iterator[tuple[NodeGroup, set[int], _Seen]]:
        """Go through the parts of groups that see anything otherwise."""
        for group, parts in self._parts.items():
            for rows, changed in parts:
                if rows and changed:
                    yield group, rows, changed


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
        shared: The groups of nodes but those of single nodes that own their devices.
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
        self._rows_by_label: dict[str, dict[str, set[int]]] = {}
        """The rows by the values of labels that were asked about since nodes changed."""
        self._rows_by_selector: dict[NodeSelectorMatcher, set[int]] = {}
        """The rows that selectors of slices select that were asked about since nodes changed."""
        self._nodes: dict[int, _SeenNode] = {}
        self._rows: dict[str, int] = {}
        self._groups: dict[tuple[SeenPool, ...], NodeGroup] = {}
        self.shared: dict[NodeGroup, None] = {}
        self._stale: dict[PoolId, set[str] | None] = {}
        self._fresh: set[int] = set()
        """The rows whose nodes came, or got other labels, since it was worked out what nodes see."""
        self._joined: dict[NodeGroup, None] = {}
        """The groups that nodes have come into since devices were given owners."""
        self._moved: list[NodeGroup | PoolView] = []
        self._dropped = 0
        self._seen = self.allocated.revision
        self._batch: GroupBatch | None = None
        self.row_count = 0
        self.answered = 0
        self.prepared: dict[bytes, object] = {}

    @property
    def revision(self) -> int:
        """A number that grows with each change of anything."""
        return self._changes + self.allocated.revision

    @property
    def end(self) -> int:
        """A number that grows with each group of nodes that has to be asked again."""
        return self._dropped + len(self._moved)

    @property
    def groups(self) -> Collection[NodeGroup]:
        """All nodes, those together that see the same pools."""
        return self._groups.values()

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
        pool.add(kept)
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
        known = self._nodes.get(row)
        if known is not None and known.name == name:
            if known.labels == labels:
                return
            known.labels = labels
            self._forget_rows()
        else:
            if known is not None:
                self.remove_node(row)
            self._forget_rows()
            self._rows[name] = row
            self._nodes[row] = _SeenNode(name, labels, self._join({row}, ()))
            if row >= self.row_count:
                self.row_count = row + 1
        self._fresh.add(row)
        self._look_where_much_changed()

    def remove_node(self, row: int) -> None:
        """Say that no node is at a row any more."""
        self._changes += 1
        known = self._nodes.pop(row, None)
        self._fresh.discard(row)
        if known is not None:
            self._forget_rows()
            self._leave({row}, known.group)
            if self._rows.get(known.name) == row:
                del self._rows[known.name]

    def node(self, row: int) -> tuple[str, NodeGroup]:
        """Return a node's name and the group that it is in.

        Raises:
            KeyError: no node is at the row.
        """
        known = self._nodes[row]
        return known.name, known.group

    def batch(self) -> GroupBatch:
        """Return the nodes that do not own the devices that they see, as arrays."""
        if self._batch is None:
            self._batch = batch_of(self.shared)
        return self._batch

    def refresh(self) -> None:
        """Work out what changed since the last time: which nodes see which pools, and what is taken of those."""
        if self._stale or self._fresh:
            self._look_again()
        if self._seen != self.allocated.revision:
            self._take_over_allocations()

    def moved_since(self, place: int) -> Sequence[NodeGroup | PoolView] | None:
        """Return what has to be asked again since `end` was so: groups, and all groups of views.

        Returns:
            None where that is too long ago.
        """
        return None if place < self._dropped else self._moved[place - self._dropped :]

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
        in_place = before is not None and after is not None and before.generation == after.generation
        if not in_place or pool.has_counters or any(not one.local_to or one.counts for one in changed):
            self._stale[identity] = None
        elif stale is not None:
            stale.update(one.local_to for one in changed)

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
        fresh, self._fresh = self._fresh, set()
        changes = _Changes()
        for identity, nodes in stale.items():
            self._note_sights(changes, identity, self._affected(identity, self._pools[identity], nodes))
        for identity in self._wide if fresh else ():
            self._note_sights(changes, identity, fresh)
        for row in fresh:
            for identity in self._local.get(self._nodes[row].name, ()):
                self._note_sights(changes, identity, (row,))
        for row, changed in changes.of_rows.items():
            group = self._nodes[row].group
            self._move({row}, group, {**changes.taken_out(row, group), **changed})
        for group, rows, changed in changes.of_parts():
            self._move(rows, group, changed)
        self._forget_views(stale)
        self._give_owners()

    def _forget_views(self, stale: Iterable[PoolId]) -> None:
        """Drop what no node sees any more of pools that changed."""
        for identity in stale:
            pool = self._pools[identity]
            for view in [one for one in pool.views.values() if not one.groups]:
                pool.forget(view)
            if not pool:
                del self._pools[identity]

    def _note_sights(self, changes: _Changes, identity: PoolId, rows: Collection[int]) -> None:
        """Note which of some rows see a pool otherwise than before."""
        for seen, together in self._sights(identity, self._pools[identity], rows):
            if isinstance(together, int):
                if seen != self._nodes[together].group.seen(identity):
                    changes.of_rows.setdefault(together, {})[identity] = seen
                continue
            for group in {self._nodes[row].group: None for row in together}:
                if seen != group.seen(identity):
                    changes.part(group, identity, seen, together)

    def _sights(
        self, identity: PoolId, pool: Pool, rows: Collection[int]
    ) -> Iterator[tuple[SeenPool | None, set[int] | int]]:
        """Go through what rows see of a pool: many rows by what selectors say of all nodes, few one by one."""
        selectors = pool.selectors if len(rows) > _FEW_ROWS else None
        if selectors is None:
            for row in rows:
                yield self._seen_by(self._nodes[row], identity), row
            return
        own = {self._rows[name] for name in pool.nodes if name in self._rows}.intersection(rows)
        for row in own:
            yield self._seen_by(self._nodes[row], identity), row
        parts: list[tuple[set[int], list[bool]]] = [({*rows} - own, [])]
        for selected in map(self._rows_selected, selectors):
            parts = [
                (each, [*verdicts, is_so])
                for part, verdicts in parts
                for each, is_so in ((part & selected, True), (part - selected, False))
                if each
            ]
        taken = self.allocated.of(identity)
        for part, verdicts in parts:
            yield None if identity in self.unusable else pool.seen_by_verdicts(verdicts, taken), part

    def _give_owners(self) -> None:
        """Say of which nodes devices are that one node alone sees; all views are those of slices that are there."""
        for group in self._joined:
            if group.rows and group.is_of_one_node:
                [group.alone] = group.rows
                self._own(group)
        self._joined.clear()

    def _own(self, group: NodeGroup) -> None:
        """Give the devices of a single node their owner, and their places there."""
        self.shared.pop(group, None)
        self._batch = None
        place = 0
        for view, _ in group.pools:
            rows = view.rows
            self.columns.owner[rows] = group.alone
            self.columns.order[rows] = np.arange(2 * place, 2 * (place + len(rows)), 2)
            self.columns.order[rows[:1]] += 1
            place += len(rows)

    def _affected(self, identity: PoolId, pool: Pool, nodes: set[str] | None) -> Collection[int]:
        if nodes is not None:
            return [self._rows[name] for name in nodes if name in self._rows]
        was_wide = identity in self._wide
        seen = None if pool.depends_on_nodes else pool.seen_from_elsewhere(self.allocated.of(identity))
        is_wide = pool.depends_on_nodes or (seen is not None and seen.view.is_usable)
        (self._wide.add if is_wide else self._wide.discard)(identity)
        self.unusable.set(identity, None if is_wide else seen)
        demands = pool.demands if pool.depends_on_nodes else None
        if demands is not None and pool.seen_from_elsewhere(self.allocated.of(identity)) is not None:
            demands = None  # nodes see it whatever their labels are
        if demands is None and (was_wide or is_wide):
            return self._nodes.keys()
        before = {row for view in pool.views.values() for group in view.groups for row in group.rows}
        before.update(self._rows[name] for name in pool.nodes if name in self._rows)
        return before.union(*(self._rows_with(label, value) for label, value in demands or ()))

    def _rows_with(self, label: str, value: str) -> Collection[int]:
        """Return the rows of the nodes that have a value of a label."""
        by_value = self._rows_by_label.get(label)
        if by_value is None:
            by_value = self._rows_by_label[label] = {}
            for row, node in self._nodes.items():
                if label in node.labels:
                    by_value.setdefault(node.labels[label], set()).add(row)
        return by_value.get(value, ())

    def _rows_selected(self, selector: NodeSelectorMatcher) -> set[int]:
        """Return the rows of the nodes that a selector selects."""
        known = self._rows_by_selector.get(selector)
        if known is None:
            if len(self._rows_by_selector) > _MOST_SELECTORS:
                self._rows_by_selector.clear()
            known = {row for row, node in self._nodes.items() if selector.matches(node.name, node.labels)}
            self._rows_by_selector[selector] = known
        return known

    def _forget_rows(self) -> None:
        """Forget which rows labels and selectors choose, because nodes changed."""
        self._rows_by_label.clear()
        self._rows_by_selector.clear()

    def _seen_by(self, node: _SeenNode, identity: PoolId) -> SeenPool | None:
        """Return a pool as a node sees it now."""
        pool = self._pools[identity]
        if identity in self.unusable and node.name not in pool.nodes:
            return None
        taken = self.allocated.of(identity)
        seen = pool.seen_from(node.name, node.labels, taken)
        return pool.unnoticed(taken) if seen is None and identity in self.unusable else seen

    def _move(self, rows: set[int], group: NodeGroup, changed: Mapping[PoolId, SeenPool | None]) -> None:
        """Put rows of a group into the one that sees some pools otherwise."""
        joined = self._join(rows, group.with_pools(changed))
        for row in rows:
            self._nodes[row].group = joined
        self._leave(rows, group)

    def _join(self, rows: set[int], pools: tuple[SeenPool, ...]) -> NodeGroup:
        group = self._groups.get(pools)
        if group is None:
            group = self._groups[pools] = NodeGroup(pools)
            self.shared[group] = None
            for seen in pools:
                seen.view.groups.add(group)
        group.rows |= rows
        self._batch = None
        if pools:
            self._joined[group] = None
        self._note(group)
        return group

    def _leave(self, rows: set[int], group: NodeGroup) -> None:
        group.rows -= rows
        self._batch = None
        if not group.rows:
            if group.alone != NOBODY:
                for view, _ in group.pools:
                    self.columns.owner[view.rows[self.columns.owner[view.rows] == group.alone]] = NOBODY
            self._joined.pop(group, None)
            self.shared.pop(group, None)
            del self._groups[group.pools]
            for seen in group.pools:
                seen.view.groups.discard(group)

    # Allocations

    def _take_over_allocations(self) -> None:
        changes, self._seen = self.allocated.changed_since(self._seen), self.allocated.revision
        if changes is None:
            for identity, pool in self._pools.items():
                for view in pool.views.values():
                    view.take(self.allocated.of(identity))
                    self._note(view)
            return
        for identity, device in changes:
            known = self._pools.get(identity)
            for view in known.views.values() if known is not None else ():
                view.retake(device, self.allocated.of(identity))
                self._note(view)

    def _note(self, moved: NodeGroup | PoolView) -> None:
        if not self.prepared:  # nobody asks what moved
            self._dropped += len(self._moved) + 1
            self._moved.clear()
            return
        self._moved.append(moved)
        if len(self._moved) > _MOST_REMEMBERED:
            dropped = _MOST_REMEMBERED // 2
            del self._moved[:dropped]
            self._dropped += dropped
