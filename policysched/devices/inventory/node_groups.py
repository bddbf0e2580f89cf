"""`NodeGroups`: nodes that can use the same device pools form a group, for which claims are evaluated once."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence, Sized
from typing import Final

from policysched.devices.inventory.allocated import PoolId
from policysched.devices.inventory.batch import GroupBatch, batch_of
from policysched.devices.inventory.pool_views import NodeGroup, PoolView, SeenPool
from policysched.devices.inventory.row_bits import bits_of, rows_of

_MOST_REMEMBERED: Final = 50_000
"""Maximum number of log entries; beyond it, the older half of the log is dropped."""
_MOST_PARTS: Final = 256
"""Maximum number of parts into which a node group is split at once; further nodes are moved one by one."""
SeenPools = Mapping[PoolId, SeenPool | None]
"""For each pool, the pool as some nodes see it; None for a pool that these nodes cannot use."""


class MovedLog:
    """Log of the node groups to evaluate again; an entry may be a `PoolView`, which stands for all groups with it.

    Args:
        readers: The readers of the log; it stays empty while there are none.
    """

    def __init__(self, readers: Sized) -> None:
        self._readers = readers
        self._moved: list[NodeGroup | PoolView] = []
        self._dropped = 0

    @property
    def end(self) -> int:
        """Position behind the last log entry, counting dropped entries."""
        return self._dropped + len(self._moved)

    def since(self, place: int) -> Sequence[NodeGroup | PoolView] | None:
        """Return the log entries from a position on; None if some of these entries were dropped."""
        return None if place < self._dropped else self._moved[place - self._dropped :]

    def note(self, moved: NodeGroup | PoolView) -> None:
        """Log that a node group, or each group with a `PoolView`, has to be evaluated again."""
        if not self._readers:
            self._dropped += len(self._moved) + 1
            self._moved.clear()
            return
        self._moved.append(moved)
        if len(self._moved) > _MOST_REMEMBERED:
            dropped = _MOST_REMEMBERED // 2
            del self._moved[:dropped]
            self._dropped += dropped


class NodeGroups:
    """All node groups; the nodes of a group can use the same device pools.

    Args:
        moved: The log of groups to evaluate again.
    """

    def __init__(self, moved: MovedLog) -> None:
        self._moved = moved
        self._by_pools: dict[tuple[SeenPool, ...], NodeGroup] = {}
        self._left: dict[PoolView, None] = {}
        """The pool views (pools as some nodes see them) that no node group has any more."""
        self._batch: GroupBatch | None = None

    @property
    def all(self) -> Collection[NodeGroup]:
        """All node groups; each node is in one group."""
        return self._by_pools.values()

    def batch(self) -> GroupBatch:
        """Return all node groups as arrays, for evaluating claims on many groups together."""
        if self._batch is None:
            self._batch = batch_of(self.all)
        return self._batch

    def among(self, rows: int) -> list[NodeGroup]:
        """Return the node groups that contain any of the given nodes (a bit set)."""
        return [one for one in self._by_pools.values() if one.bits & rows]

    def join(self, rows: int, pools: tuple[SeenPool, ...]) -> NodeGroup:
        """Move nodes into the group of nodes that can use exactly the given pools; return this group."""
        group = self._by_pools.get(pools)
        if group is None:
            group = self._by_pools[pools] = NodeGroup(pools)
            for view in group.views:
                view.groups.add(group)
        group.bits |= rows
        group.rows.update(rows_of(rows))
        self._batch = None
        self._moved.note(group)
        return group

    def leave(self, rows: int, group: NodeGroup) -> None:
        """Remove nodes from a node group; if no node is left, drop the group."""
        group.bits &= ~rows
        group.rows.difference_update(rows_of(rows))
        self._batch = None
        if not group.rows:
            del self._by_pools[group.pools]
            for view in group.views:
                view.groups.discard(group)
                if not view.groups:
                    self._left[view] = None
            group.let_go()

    def unseen(self) -> list[PoolView]:
        """Return the pool views (pools as some nodes see them) that no node group has any more."""
        left, self._left = self._left, {}
        return [view for view in left if not view.groups]


class SightChanges:
    """Collects for which nodes a pool changed, so that nodes of a group with equal changes join a new group together.

    Sets of rows are integers, as in `row_bits`.
    """

    def __init__(self) -> None:
        self._of_rows: dict[int, tuple[NodeGroup, dict[PoolId, SeenPool | None]]] = {}
        self._single = 0
        """The nodes, as a bit set, whose changes are recorded one by one instead of for a part of their group."""
        self._parts: dict[NodeGroup, list[tuple[int, dict[PoolId, SeenPool | None]]]] = {}

    def row(self, row: int, group: NodeGroup, identity: PoolId, seen: SeenPool | None) -> None:
        """Record the pool as one node of a group sees it now."""
        known = self._of_rows.get(row)
        if known is None:
            known = self._of_rows[row] = group, self._taken_out(1 << row, group)
            self._single |= 1 << row
        known[1][identity] = seen

    def part(self, rows: int, group: NodeGroup, identity: PoolId, seen: SeenPool | None) -> None:
        """Record the pool as some nodes of a group see it now; this splits the group into parts."""
        parts = self._parts.setdefault(group, [])
        rows &= group.bits
        by_themselves = rows if len(parts) >= _MOST_PARTS else rows & self._single
        for row in rows_of(by_themselves):
            self.row(row, group, identity, seen)
        rest = rows & ~by_themselves
        for place, (part, changed) in enumerate(parts if rest else ()):
            hit = part & rest
            if hit == part:
                changed[identity] = seen
            elif hit:
                parts[place] = part ^ hit, changed
                parts.append((hit, {**changed, identity: seen}))
            rest ^= hit
            if not rest:
                break
        if rest:
            parts.append((rest, {identity: seen}))

    def __iter__(self) -> Iterator[tuple[int, NodeGroup, SeenPools]]:
        """Yield sets of nodes of one group, each with all pools that changed for these nodes."""
        alike: dict[tuple[NodeGroup, Hashable], list[int]] = {}
        for row, (group, changed) in self._of_rows.items():
            alike.setdefault((group, tuple(changed.items())), []).append(row)
        for (group, _), rows in alike.items():
            yield bits_of(rows), group, self._of_rows[rows[0]][1]
        for group, parts in self._parts.items():
            for part, changed in parts:
                if part:
                    yield part, group, changed

    def _taken_out(self, bit: int, group: NodeGroup) -> dict[PoolId, SeenPool | None]:
        """Remove a node from the recorded part of its group; return the changes that were recorded for the part."""
        parts = self._parts.get(group, [])
        for place, (part, changed) in enumerate(parts):
            if part & bit:
                parts[place] = part ^ bit, changed
                return dict(changed)
        return {}
