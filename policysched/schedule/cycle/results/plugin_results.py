"""One plugin's results for all nodes: reason codes or scores, recomputed for nodes that changed.

An array has the columns' capacity and is allocated at the first result that is not 0: most filters reject no row of a
class, and an evaluation is as large as its arrays. Between two full computations, `flat` only becomes False and
`rejects_any` only becomes True: either may not be current if an array is uniform again.

The results of a block have one code or sum per row for all its members; `parts` returns the results by member. Other
plugins have one part.

Shapes: C the capacity of the columns, N rows in use, R rows of a call, E entries of the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import (
    MAX_NODE_SCORE,
    NO_ROWS,
    Aspect,
    BlockMember,
    Cluster,
    Code,
    Codes,
    Incremental,
    Mask,
    Plugin,
    PluginBlock,
    RowFilter,
    RowNumbers,
    Rows,
    RowScore,
    Scores,
    SizedState,
    Status,
    unresolvable,
)
from policysched.framework.partial_plugins import Everywhere
from policysched.framework.profile import FIRST_PLACE
from policysched.state.tables.interner import MISSING

PRESENCE: Final = int(Aspect.PRESENCE)
PRE_FILTER_RESULT = "PreFilterResult"
NARROWED: Final = 1
"""Place in the order of filters that stands for nodes which PreFilter excluded."""
WITH_NOMINATED_PODS: Final = 2
"""Place in the order of filters that stands for nodes which reject the pod only beside their nominated pods."""
EXTENDERS: Final = 1 << 14
"""Place, in the order of filters, of the first extender; higher than every plugin's place, and within 16 bits."""
WIDEST_NARROW_WEIGHT = (2**31 - 1) // MAX_NODE_SCORE
"""Largest weight of a score plugin for which scores are stored in 32 bits; for larger weights, 64 bits are used."""
BYTES = 512
"""Memory of one plugin's results without their arrays. Units: bytes."""
NO_CODES: Final[Codes] = np.zeros(0, np.int32)


class RowChanges:
    """The rows of changed nodes, with the changed parts (such as labels) of each, as two arrays (E,)."""

    __slots__ = ("_aspects", "_common", "_rows", "_selected", "_touched")

    def __init__(self, rows: RowNumbers, aspects: NDArray[np.int32]) -> None:
        self._rows = rows
        self._aspects = aspects
        distinct = set(aspects.tolist())
        self._touched = reduce(or_, distinct, 0)
        self._common = reduce(and_, distinct, -1)
        self._selected: dict[int, RowNumbers] = {}

    def of(self, reads: int) -> RowNumbers | None:
        """Return the rows of the nodes of which any of the given parts changed; None if no node has such a change.

        Calls with the same aspects return the same array, so that plugins can share results about it.
        """
        relevant = self._touched & reads
        if not relevant:
            return None
        if self._common & relevant:
            return self._rows
        found = self._selected.get(relevant)
        if found is None:
            found = self._selected[relevant] = self._rows[(self._aspects & relevant) != 0]
        return found


def _memory(values: NDArray[Any], state: object, rows: int) -> int:
    """Estimate the memory of a plugin's results and prepared state. Units: bytes."""
    return BYTES + values.nbytes + (state.memory(rows) if isinstance(state, SizedState) else 0)


def _selected(differs: Mask, rows: Rows) -> RowNumbers:
    return differs.nonzero()[0] if isinstance(rows, slice) else rows[differs]


class MemberCodes(NamedTuple):
    """The reason codes of one policy, as a member of the plugin block that evaluates all policies."""

    plugin: BlockMember
    place: int
    """The place, in the order of filters, of the block that evaluates all policies."""
    codes: Codes
    reason: Callable[[int], Status]
    rejects_any: bool = True


class MemberScores(NamedTuple):
    """The scores of one policy, as a member of the plugin block that evaluates all policies, without the weight."""

    plugin: BlockMember
    weight: int
    tier: int
    values: NDArray[Any]
    left_out: bool = False

    @property
    def flat(self) -> bool:
        """Whether every score is 0."""
        return not np.count_nonzero(self.values)

    def final(self, feasible: Mask) -> Scores:
        """Return the scores times the weight; values of infeasible nodes are undefined. Shapes: (N,) -> (N,)."""
        return self.values[: feasible.size] * np.int64(self.weight)


def member_names(plugin: Plugin) -> tuple[str, ...]:
    """Return the names of a plugin block's members, such as policies; for any other plugin, the plugin's name."""
    return tuple([one.name for one in plugin.members]) if isinstance(plugin, PluginBlock) else (plugin.name,)


def _names(plugin: RowFilter[Any] | RowScore[Any], block: PluginBlock[Any] | None, state: Any) -> tuple[str, ...]:
    return (plugin.name,) if block is None else tuple([one.name for one in block.members_of(state)])


class FilterResults:
    """A filter's reason code for each node (0 accepts the node), with the data that the filter prepared."""

    __slots__ = ("_capacity", "_incremental", "block", "codes", "place", "plugin", "reads", "rejects_any", "state")

    def __init__(self, plugin: RowFilter[Any], state: Any, place: int) -> None:
        self.plugin = plugin
        self.place = place
        """The place in the order of filters; of several filters that reject a node, the lowest place is reported."""
        self.state = state
        self.block: PluginBlock[Any] | None = plugin if isinstance(plugin, PluginBlock) else None
        reads = plugin.filter_reads if self.block is None else self.block.reads_of(state)
        self.reads = int(reads) | PRESENCE
        self._incremental: Incremental[Any] | None = plugin if isinstance(plugin, Incremental) else None
        self._capacity = 0
        self.codes = NO_CODES
        self.rejects_any = False

    def take_over(self, before: FilterResults) -> None:
        """Copy the reason codes from results under an earlier profile, for the same prepared data."""
        self._capacity, self.codes, self.rejects_any = before._capacity, before.codes, before.rejects_any

    def recompute(self, capacity: int, size: int) -> None:
        """Evaluate the filter on all nodes, whose rows are `size` rows of columns of length `capacity`."""
        self._capacity = capacity
        self.rejects_any = False
        if not size:
            return
        codes = self.plugin.filter(self.state, slice(0, size))
        if np.count_nonzero(codes):
            self.codes = np.zeros(capacity, np.int32)
            self.codes[:size] = codes
            self.rejects_any = True

    def update(self, rows: RowNumbers) -> RowNumbers:
        """Evaluate the filter on changed nodes and the nodes they affect; return the rows whose reason code changed."""
        affected = rows if self._incremental is None else self._incremental.affected_rows(self.state, rows)
        return self._ask(affected) if isinstance(affected, slice) or affected.size else NO_ROWS

    @property
    def follows_changes(self) -> bool:
        """Whether reason codes may change although nothing that the plugin reads of a node changed."""
        return self._incremental is not None and self._incremental.follows_changes

    @property
    def names(self) -> tuple[str, ...]:
        """The plugin's name, or for a plugin block the names of its members (policies) that apply to the pod."""
        return _names(self.plugin, self.block, self.state)

    def parts(self) -> Sequence[FilterResults | MemberCodes]:
        """Return the results of each member (policy) of a plugin block; for any other plugin, only these results."""
        if self.block is None:
            return (self,)
        return [MemberCodes(one, self.place, codes, self.reason) for one, codes in self.block.rows_of(self.state)]

    @property
    def plugin_name(self) -> str:
        """The name of the plugin or the extender; empty for nodes excluded by PreFilter and for nominated pods."""
        return self.plugin.name if self.place >= FIRST_PLACE else ""

    @property
    def is_of_profile(self) -> bool:
        """Whether the results are those of a filter plugin, not of an extender, nominated pods or PreFilter."""
        return FIRST_PLACE <= self.place < EXTENDERS

    @property
    def nbytes(self) -> int:
        """The memory of the results and of the data that the plugin prepared. Units: bytes."""
        return _memory(self.codes, self.state, self._capacity)

    @property
    def fails(self) -> bool:
        """Whether the filter fails with an error on every node."""
        return isinstance(self.state, Everywhere) and self.state.status.code is Code.ERROR

    def reason(self, code: int) -> Status:
        """Return the plugin's status for a reason code."""
        return self.named(self.plugin.reason(self.state, code))

    def named(self, status: Status) -> Status:
        """Return a status with the plugin's name, unless the status already has the name of a plugin."""
        return status if status.plugin else status.by(self.plugin.name)

    def _ask(self, rows: Rows) -> RowNumbers:
        """Evaluate the filter on nodes, given by row; return the rows whose reason code changed."""
        codes = self.plugin.filter(self.state, rows)
        if not self.rejects_any:
            if not np.count_nonzero(codes):
                return NO_ROWS
            self.codes = np.zeros(self._capacity, np.int32)
            self.rejects_any = True
        differs = codes != self.codes[rows]
        self.codes[rows] = codes
        return _selected(differs, rows)


class ScoreResults:
    """A score plugin's score for each node: final and weighted, or raw for a plugin with NormalizeScore."""

    __slots__ = (
        *("_capacity", "_incremental", "block", "flat", "may_leave_range", "normalizes", "plugin", "reads", "state"),
        *("tier", "values", "weight"),
    )

    def __init__(self, plugin: RowScore[Any], weight: int, state: Any) -> None:
        self.plugin = plugin
        self.weight = weight
        self.tier = plugin.tier
        """The tier of the scores: scores of a higher tier decide; scores of lower tiers break ties."""
        self.state = state
        self.normalizes = plugin.normalizes
        self.block: PluginBlock[Any] | None = plugin if isinstance(plugin, PluginBlock) else None
        reads = plugin.score_reads if self.block is None else self.block.reads_of(state)
        self.reads = int(reads) | PRESENCE
        self._incremental: Incremental[Any] | None = plugin if isinstance(plugin, Incremental) else None
        self._capacity = 0
        self.values: NDArray[np.signedinteger] = np.zeros(0, np.int64)
        self.flat = True
        """True while the score of every node is 0."""
        self.may_leave_range = self.normalizes and not self.plugin.stays_in_range(state)
        """Whether final scores may be outside 0 to 100."""

    def take_over(self, before: ScoreResults) -> bool:
        """Copy the scores from results under an earlier profile, for the same data; return False for another weight."""
        if before.weight != self.weight and not self.normalizes:
            return False
        self._capacity, self.flat, self.may_leave_range = before._capacity, before.flat, before.may_leave_range
        self.values = before.values
        return True

    def recompute(self, capacity: int, size: int) -> None:
        """Score all nodes, whose rows are `size` rows of columns of length `capacity`."""
        self._capacity = capacity
        self.flat = True
        self.may_leave_range = self.normalizes and not self.plugin.stays_in_range(self.state)
        if size:
            self._ask(slice(0, size))

    def update(self, rows: RowNumbers) -> RowNumbers:
        """Score changed nodes and the nodes that they affect; return the rows whose score changed."""
        affected = rows if self._incremental is None else self._incremental.affected_rows(self.state, rows)
        return self._ask(affected) if isinstance(affected, slice) or affected.size else NO_ROWS

    @property
    def nbytes(self) -> int:
        """The memory of the results and of the data that the plugin prepared. Units: bytes."""
        return _memory(self.values, self.state, self.values.size)

    @property
    def names(self) -> tuple[str, ...]:
        """The plugin's name, or for a plugin block the names of its members (policies) that apply to the pod."""
        return _names(self.plugin, self.block, self.state)

    def parts(self) -> Sequence[ScoreResults | MemberScores]:
        """Return the results of each member (policy) of a plugin block; for any other plugin, only these results."""
        if self.block is None:
            return (self,)
        return [MemberScores(one, one.weight, one.tier, values) for one, values in self.block.rows_of(self.state)]

    @property
    def left_out(self) -> bool:
        """Whether decision records omit the plugin."""
        return self.plugin.leaves_out(self.state)

    def final(self, feasible: Mask) -> Scores:
        """Return the weighted final scores of all nodes; values of infeasible nodes are undefined.

        Shapes: (N,) -> (N,).
        """
        if not self.normalizes:
            return self._raw(feasible.size)
        found = self.added(feasible)
        return np.zeros(feasible.size, np.int64) if found is None else found

    def added(self, feasible: Mask) -> Scores | None:
        """Return the weighted final scores of a plugin with NormalizeScore; None if all scores are 0."""
        normalized = self.plugin.normalize(self.state, self._raw(feasible.size), feasible)
        return None if normalized is None else normalized * self.weight

    def score_out_of_range(self, feasible: Mask) -> int | None:
        """Return the lowest score below 0, or else the highest above 100, of the feasible nodes, without the weight.

        Returns:
            None if all scores are within 0 to 100.
        """
        if self.normalizes:
            finals = self.plugin.normalize(self.state, self._raw(feasible.size), feasible)
        else:
            finals = self.plugin.score(self.state, slice(0, feasible.size))
        if finals is None:
            return None
        among = finals[feasible]
        lowest, highest = int(among.min(initial=0)), int(among.max(initial=0))
        return lowest if lowest < 0 else highest if highest > MAX_NODE_SCORE else None

    @property
    def _width(self) -> type[np.signedinteger]:
        """The integer type of the scores: 32 bits, or 64 bits for a weight above WIDEST_NARROW_WEIGHT."""
        if self.normalizes:
            return np.int64
        return np.int64 if abs(self.weight) > WIDEST_NARROW_WEIGHT else np.int32

    def _raw(self, size: int) -> Scores:
        return np.zeros(size, np.int64) if self.flat else self.values[:size].astype(np.int64, copy=False)

    def _ask(self, rows: Rows) -> RowNumbers:
        scores = self.plugin.score(self.state, rows)
        checked = not self.normalizes and not self.plugin.stays_in_range(self.state)
        if checked and np.count_nonzero(scores.view(np.uint64) > MAX_NODE_SCORE):
            self.may_leave_range = True
            scores = np.clip(scores, 0, MAX_NODE_SCORE)
        if self.flat:
            if not np.count_nonzero(scores):
                return NO_ROWS
            self.values = np.zeros(self._capacity, self._width)
            self.flat = False
        if self.normalizes:
            self.values[rows] = scores
            return NO_ROWS
        weighted = scores if self.weight == 1 else scores * self.weight
        values = weighted.astype(self.values.dtype, copy=False)
        differs = values != self.values[rows]
        self.values[rows] = values
        return _selected(differs, rows)


class NarrowedNodes(RowFilter[tuple[frozenset[str], Cluster]]):
    """A filter that rejects the nodes that PreFilter excluded (`PreFilterResult`)."""

    name = PRE_FILTER_RESULT

    def __init__(self, plugins: tuple[str, ...]) -> None:
        self._status = unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]")

    @staticmethod
    def prepare(allowed: frozenset[str], cluster: Cluster) -> tuple[frozenset[str], Cluster]:
        """Return the data of the filter: the names of the allowed nodes, and the cluster."""
        return allowed, cluster

    def filter(self, state: tuple[frozenset[str], Cluster], rows: Rows) -> Codes:
        """Return, for each node's row, a code that rejects the node if PreFilter does not allow it."""
        allowed, cluster = state
        find = cluster.strings.find
        known = np.array([code for name in allowed if (code := find(name)) != MISSING], np.int32)
        outside: Mask = np.isin(cluster.nodes.name.data[rows], known, invert=True)
        return outside.astype(np.int32)

    def reason(self, state: Any, code: int) -> Status:  # noqa: ARG002 - it has one reason
        """Return the status that names the plugins which allowed only some nodes at PreFilter."""
        return self._status


class GivenCodes(RowFilter[Codes]):
    """A filter that returns previously computed reason codes, one for each node.

    Args:
        name: The name in statuses without a plugin name.
        statuses: The status of each code, from 1.
        reads: The aspects that the codes depend on.
    """

    def __init__(self, name: str, statuses: Sequence[Status], reads: Aspect = Aspect.NONE) -> None:
        self.name, self.filter_reads = name, reads
        self._statuses = statuses

    def filter(self, state: Codes, rows: Rows) -> Codes:
        """Return the previously computed reason codes of nodes, given by row."""
        return state[rows]

    def reason(self, state: Codes, code: int) -> Status:  # noqa: ARG002 - all states have the same statuses
        """Return the status that a reason code of the filter stands for."""
        return self._statuses[code - 1]
