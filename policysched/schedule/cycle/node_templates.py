"""`TemplateEvaluator`: whether a new node, such as an autoscaler would add, fits a pod, and which clauses reject it.

The node is in the cluster only during the call, so that filters over several nodes, such as topology spread, count it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from policysched.errors import UsageError
from policysched.framework import Status
from policysched.framework.profile import FIRST_PLACE
from policysched.model.objects import Node, Pod
from policysched.rules.compile.clauses import Clause, filter_clauses
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.results.rule_rows import FINE, FilterRow, shortened
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.record import Record, status_record
from policysched.state.cluster import Cluster

MOST_TEMPLATES: Final = 32
"""Largest number of node templates of a dry-run; more is an error."""


class TemplateEvaluator:
    """Evaluates the filters of a pod on nodes that do not exist. Extenders are not called.

    Args:
        engine: A separate engine of the pod's profile.
        pod: The pod.
        policies: The policies in force; those in Shadow mode are not described.
    """

    def __init__(self, engine: Engine, pod: Pod, policies: Sequence[ActivePolicy]) -> None:
        enforced = (one for one in policies if one.policy.spec.mode == "Enforce")
        self._engine, self._policies = engine, sorted(enforced, key=lambda one: one.policy.key)
        self._pod = replace(pod, metadata=replace(pod.metadata, uid=""))
        self._clauses: dict[FilterRow, list[Clause]] = {}

    def evaluate(self, template: Node) -> Record:
        """Return whether the pod fits a new node like the template, and the reasons why not.

        Raises:
            UsageError: the cluster has a node of this name.
        """
        cluster = self._engine.cluster
        with _added(template, cluster) as row:
            found = self._engine.find(self._pod, rows=np.array([row]))
            statuses = _statuses(found, row)
            record: Record = {"fits": not statuses, "rejected": [status_record(one) for one in statuses]}
            record["rules"] = {one.policy.key: rules for one in self._policies if (rules := self._rejecting(one, row))}
        return {key: value for key, value in record.items() if value not in ({}, [])}

    def _rejecting(self, active: ActivePolicy, row: int) -> dict[str, Any]:
        """Return the filters of a policy that reject a node, each with the clauses that are not true."""
        rejecting = _codes(active, self._pod, self._engine.cluster, row)
        return {
            one.rule.name: {
                "result": "missing" if one.is_unknown(code) else "false",
                "clauses": [shortened(clause.text) for clause in self._of(active, one) if self._fails(clause, row)],
            }
            for one, code in rejecting
        }

    def _of(self, active: ActivePolicy, row: FilterRow) -> list[Clause]:
        if row not in self._clauses:
            rule = next(one for one in active.policy.spec.filters if one.name == row.rule.name)
            self._clauses[row] = [*filter_clauses(active.policy, rule)]
        return self._clauses[row]

    def _fails(self, clause: Clause, row: int) -> bool:
        return bool(_codes(ActivePolicy(clause.policy), self._pod, self._engine.cluster, row))


@contextmanager
def _added(template: Node, cluster: Cluster) -> Iterator[int]:
    """Add a node to the cluster inside this context; yield the node's row."""
    name = template.metadata.name
    if name in cluster.nodes.row_of:
        raise UsageError(f'node template "{name}": a node or a placed pod has this node name: change metadata.name')
    try:
        yield cluster.set_node(template).row
    finally:
        cluster.remove_node(name)


def _statuses(found: Evaluation, row: int) -> list[Status]:
    """Return the status of each filter that rejects the node of a row, or the only status that rejects every node."""
    everywhere = found.rejection or found.filter_failure
    if everywhere is not None:
        return [everywhere]
    parts = [one for one in found.filter_parts() if one.codes[row]]
    own = [one for one in parts if one.place >= FIRST_PLACE] or parts
    return [one.reason(int(one.codes[row])) for one in own]


def _codes(active: ActivePolicy, pod: Pod, cluster: Cluster, row: int) -> list[tuple[FilterRow, int]]:
    """Return the filter rules of a policy that are not true for a node, each with its reason code."""
    matrix = active.filter_matrix(pod, cluster)
    if matrix is None or isinstance(matrix, Status):
        return []
    found = [(rule, int(codes[0])) for rule, codes in matrix.by_rule(0, np.array([row]))]
    return [(rule, code) for rule, code in found if code != FINE]
