"""The PodTopologySpread plugin at PreFilter, Filter, PreScore, Score and NormalizeScore, with its queueing hints.

Hard constraints filter nodes, soft constraints score nodes. Pods without constraints use the default constraints of the
configuration, with the selectors of their services and controllers.

Source: plugins/podtopologyspread, v1.36, v1.37 and v1.38; pkg/scheduler/apis/config/v1 (types, defaults.go) and
validation_pluginargs.go for the arguments.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import force_setattr

from policysched.framework import (
    SKIP,
    Aspect,
    ChangedRow,
    ChangedRows,
    Cluster,
    Code,
    Codes,
    Hint,
    Incremental,
    Mask,
    PreparedFilter,
    PreparedScore,
    RowNumbers,
    Rows,
    ScorePlugin,
    Scores,
    Status,
    WhatIfFilter,
)
from policysched.model.objects import Pod, TopologySpreadConstraint
from policysched.model.selection.name_validation import is_qualified_name
from policysched.plugins.arguments import Fault, PluginArguments
from policysched.plugins.columns import SharedByCluster, row_count
from policysched.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    HOSTNAME,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    Constraint,
    ConstraintError,
    Defaults,
)
from policysched.plugins.pod_topology_spread.filter import REASONS, DomainVerdicts, HardState
from policysched.plugins.pod_topology_spread.hints import spread_hints
from policysched.plugins.pod_topology_spread.rows import CountedRows, Inclusion, Inclusions
from policysched.plugins.pod_topology_spread.score import SoftConstraint, SoftOverDomains, SoftOverNodes, SoftState
from policysched.state.placed.pods import PlacedPod


class PodTopologySpread(WhatIfFilter[HardState], ScorePlugin[SoftState], Incremental[HardState | SoftState]):
    """The PodTopologySpread plugin: filters and scores nodes by how evenly pods are spread over topology domains.

    Args:
        defaults: The default constraints.
        empty_counts: Whether a constraint with an empty selector counts all pods of the namespace.
    """

    name = "PodTopologySpread"
    filter_reads = Aspect.LABELS | Aspect.TAINTS | Aspect.PODS
    normalizes = True

    def __init__(self, defaults: Defaults = SYSTEM_DEFAULTS, *, empty_counts: bool = False) -> None:
        self._defaults = defaults
        self._empty_counts = empty_counts
        self._rows: SharedByCluster[CountedRows] = SharedByCluster()

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PreparedFilter[HardState]:
        """Return the compiled hard (DoNotSchedule) constraints; SKIP for pods without hard constraints."""
        try:
            constraints = self._defaults.constraints_of(pod, DO_NOT_SCHEDULE, cluster)
        except ConstraintError as error:
            return Status(Code.ERROR, (f"get constraints from pod: {error}",))
        if not constraints:
            return SKIP
        labels = frozenset(one.topology_key for one in constraints)
        included = Inclusions(pod, labels)

        def judge(one: Constraint) -> DomainVerdicts:
            rows = self._rows_of(included.of(one), cluster)
            counter = one.counter(pod.metadata.namespace, cluster, constraints, empty_counts=self._empty_counts)
            sums = cluster.sums.of(counter, rows)
            return DomainVerdicts(one, rows, sums, pod)

        return HardState(cluster.nodes, constraints, judge)

    def filter(self, state: HardState, rows: Rows) -> Codes:
        """Reject nodes without a topology label, and nodes whose topology domain would exceed maxSkew."""
        return state.codes(rows)

    def affected_rows(self, state: HardState | SoftState, rows: RowNumbers) -> Rows:
        """Return the changed nodes, and the nodes of topology domains whose reason code changed."""
        return state.affected(rows) if isinstance(state, HardState) else rows

    def is_affected_by(self, state: HardState, placed: PlacedPod) -> bool:
        """Return whether a constraint counts a placed pod."""
        return state.counts(placed)

    def filter_changed(self, state: HardState, changed: ChangedRow) -> Status | None:
        """Return the status of a simulated node, from the number of pods in its topology domains; None if it passes."""
        code = state.on(changed)
        return REASONS[code] if code else None

    def filter_changed_rows(self, state: HardState, changed: ChangedRows) -> Codes | None:
        """Return the reason codes of simulated nodes, from the numbers of pods in their topology domains."""
        return state.on_rows(changed)

    def reason(self, state: HardState, code: int) -> Status:  # noqa: ARG002 - the code says it all
        """Return the rejection status that a reason code of the filter stands for."""
        return REASONS[code]

    def prepare_score(self, pod: Pod, cluster: Cluster) -> PreparedScore[SoftState]:
        """Return the compiled soft (ScheduleAnyway) constraints; SKIP for pods without soft constraints."""
        try:
            constraints = self._defaults.constraints_of(pod, SCHEDULE_ANYWAY, cluster)
        except ConstraintError as error:
            return Status(Code.ERROR, (f"calculating preScoreState: {error}",))
        if not constraints:
            return SKIP
        labels = frozenset(one.topology_key for one in constraints) if self._requires_labels(pod) else frozenset()
        # if no label is required, a row without a constraint's label is treated as one with an empty value
        included = Inclusions(pod, labels, missing_is_empty=not labels)
        namespace = pod.metadata.namespace

        def soft(one: Constraint) -> SoftConstraint:
            counter = one.counter(namespace, cluster, constraints, empty_counts=self._empty_counts)
            if one.topology_key == HOSTNAME:
                return SoftOverNodes(one, counter, cluster)
            rows = self._rows_of(included.of(one), cluster)
            return SoftOverDomains(one, rows, cluster.sums.of(counter, rows))

        return SoftState(constraints, soft, labels, cluster)

    def score(self, state: SoftState, rows: Rows) -> Scores:
        """Return 1 for each node: `normalize` computes the scores, which depend on the feasible nodes."""
        return np.ones(row_count(state.nodes, rows), np.int64)

    def normalize(self, state: SoftState, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - not looked at
        """Compute the scores from the feasible nodes."""
        return state.finals(feasible)

    def stays_in_range(self, state: SoftState) -> bool:
        """Return whether every maxSkew is at least 1, so that scores are within 0 to 100."""
        return state.in_range

    def events(self) -> Sequence[Hint]:
        """Return the hints for placed pods, nodes, and updates of the pod."""
        return spread_hints(self._defaults)

    def stamp(self, cluster: Cluster) -> Hashable:
        """Return a value that changes with the services and controllers that default constraints read."""
        return cluster.workloads.stamp if self._defaults.constraints else 0

    def _rows_of(self, wanted: Inclusion, cluster: Cluster) -> CountedRows:
        return self._rows.of(cluster, wanted, lambda: CountedRows(wanted, cluster))

    def _requires_labels(self, pod: Pod) -> bool:
        """Return whether nodes without a topology label of the constraints get no score."""
        return bool(pod.spec.topology_spread_constraints) or not self._defaults.are_the_systems


SYSTEM: Final = "System"
LIST: Final = "List"
MOST: Final = 2**31 - 1


class SpreadArguments(PluginArguments, frozen=True):
    """The arguments of PodTopologySpread."""

    defaulting_type: str = ""
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()

    def __post_init__(self) -> None:
        """Set the default of `defaultingType`."""
        force_setattr(self, "defaulting_type", self.defaulting_type or SYSTEM)

    def faults(self) -> Iterator[Fault]:
        """Yield the invalid fields of the arguments, each with the reason."""
        kind, constraints = self.defaulting_type, self.default_constraints
        if kind not in (SYSTEM, LIST):
            yield "defaultingType", f'"{kind}" is neither {LIST} nor {SYSTEM}'
        if kind == SYSTEM and constraints:
            yield "defaultingType", f"{SYSTEM} cannot be combined with defaultConstraints"
        for index, one in enumerate(constraints):
            for field, fault in _faults(one):
                yield f"defaultConstraints[{index}].{field}", fault
            same = (one.topology_key, one.when_unsatisfiable)
            if same in {(other.topology_key, other.when_unsatisfiable) for other in constraints[:index]}:
                yield f"defaultConstraints[{index}]", f"duplicate constraint for {' and '.join(same)}"


def pod_topology_spread(given: SpreadArguments, *, empty_counts: bool) -> PodTopologySpread:
    """Create PodTopologySpread from its plugin arguments."""
    are_the_systems = given.defaulting_type == SYSTEM
    defaults = SYSTEM_DEFAULTS if are_the_systems else Defaults(given.default_constraints)
    return PodTopologySpread(defaults, empty_counts=empty_counts)


def _faults(one: TopologySpreadConstraint) -> Iterator[Fault]:
    """Yield the invalid fields of a default constraint, each with the reason."""
    if not 0 < one.max_skew <= MOST:
        yield "maxSkew", f"{one.max_skew} is not between 1 and {MOST}"
    if not is_qualified_name(one.topology_key):
        yield "topologyKey", f'"{one.topology_key}" is not a label key'
    if one.when_unsatisfiable not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        yield "whenUnsatisfiable", f'"{one.when_unsatisfiable}" is neither {DO_NOT_SCHEDULE} nor {SCHEDULE_ANYWAY}'
    if one.label_selector is not None:
        yield "labelSelector", "must not be set in default constraints, because it is derived for each pod"
