"""What graphs read, and whether any of it moved since it was last looked at.

Rows say through the journal what of them changed. Counters of placed pods say it themselves: most placements leave a
given counter as it was, and an aggregate over it is not computed again for them.
"""

from __future__ import annotations

from collections.abc import Iterable

from policysched.framework import Aspect, RowNumbers
from policysched.language.ir.graph import POD_AGGREGATES, TIME, Input, Typed
from policysched.rules.compile.graphs import parts, walk
from policysched.rules.dependencies.context import EvaluationContext
from policysched.rules.dependencies.counters import counter
from policysched.rules.inputs.nodes import aspects_read
from policysched.rules.inputs.pods import PodInputs
from policysched.state.placed.counters import PodCounter

PODS = int(Aspect.PODS)


class Reads:
    """The aspects of rows that some graphs read, and their counters."""

    __slots__ = ("_counters", "_versions", "aspects")

    def __init__(self, roots: Iterable[Typed], pod: PodInputs, context: EvaluationContext) -> None:
        self.aspects = int(Aspect.PRESENCE)
        """Without the pods that only counters look at."""
        counters: dict[Typed, PodCounter] = {}
        for node in walk(roots, lambda node: () if node in counters else parts(node)):
            kept = counter(context, node, pod) if node.op in POD_AGGREGATES else None
            if kept is None:
                self.aspects |= int(_own_aspects(node))
            else:
                counters[node] = kept
        self._counters = list(counters.values())
        self._versions = [-1] * len(self._counters)

    @property
    def counts(self) -> bool:
        """Whether there are counters among it."""
        return bool(self._counters)

    def counted(self) -> bool:
        """Tell whether a counter moved since this was last asked."""
        versions = [counter.version for counter in self._counters]
        before, self._versions = self._versions, versions
        return versions != before


class Version:
    """Whether what a graph is made of may have changed, and on which rows."""

    __slots__ = ("_context", "_reads", "_seen", "_timed", "rows", "touched")

    def __init__(self, node: Typed, pod: PodInputs, context: EvaluationContext) -> None:
        self._context = context
        self._reads = Reads((node,), pod, context)
        self._timed = TIME in node.inputs
        self._seen: tuple[int, float] | None = None
        self.rows: RowNumbers | None = None
        """The rows that changed between the last two questions; None where any may have."""
        self.touched = 0
        """The aspects in which any row changed then."""

    def is_past(self) -> bool:
        """Tell whether it may be another since this was last asked."""
        cluster = self._context.cluster
        now = (cluster.journal.position, cluster.time.seconds if self._timed else 0.0)
        before, self._seen = self._seen, now
        if before == now:
            return False
        counted = self._reads.counted()
        self.rows = None
        if before is None or before[1] != now[1]:
            return True
        reads = self._reads.aspects | (PODS if counted else 0)
        self.rows, self.touched = self._context.changed(before[0], reads)
        return self.rows is None or self.rows.size > 0


def _own_aspects(node: Typed) -> Aspect:
    if node.op in POD_AGGREGATES:
        return Aspect.PODS
    return aspects_read((node.data,)) if isinstance(node.data, Input) else Aspect.NONE
