"""The decision record: what a scheduling cycle found out, as a plain dict for people, machines and tests.

Built from a decision on request only, so that the running scheduler never pays for it. Empty keys are omitted.
`docs/reference/decision-record.md` describes the fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from policysched.framework import Mask, PostFilterResult, Status
from policysched.model.objects import DeviceResult, ResourceClaim
from policysched.plugins.default_preemption.guards import Guarded
from policysched.plugins.default_preemption.plugin import PreemptionDetails
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from policysched.plugins.dynamic_resources.pod_claims import NO_DEVICES
from policysched.rules.plugin.policy_plugin import PolicyPlugin
from policysched.rules.plugin.record import describe
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.per_pod_results import with_out_of_tree_scores
from policysched.schedule.cycle.results.rejections import FEASIBLE

if TYPE_CHECKING:
    from policysched.devices import Refusals

Record = dict[str, Any]
MOST_EXPLAINED: Final = 20
"""Of how many nodes it is told what stands against their devices."""


def make_record(
    decision: Decision, policies: Sequence[PolicyPlugin] = (), outcome: PostFilterResult | None = None
) -> Record:
    """Describe a decision; read it before the cluster changes.

    Args:
        decision: What the cycle found out.
        policies: The policies that may have something to say, Shadow ones too.
        outcome: What PostFilter came to, where no node was feasible.
    """
    pod = decision.pod
    record: Record = {"pod": pod.key, "schedulerName": pod.spec.scheduler_name, "result": _result(decision)}
    if decision.failed:
        record["error"] = decision.error()
        return record
    feasible, names = feasible_nodes(decision), decision.cluster.nodes.names
    if decision.row >= 0:
        record["selected"] = decision.node
        record["best"] = sorted(names[row] for row in decision.best)
    columns: Columns | None = None
    if decision.rejection is not None:
        record["preFilter"] = _status(decision.rejection)
    else:
        record["rejected"] = _rejected(decision)
        record["refusedDevices"] = _refused_devices(decision, record["rejected"])
        columns = _columns(decision, feasible)
    if decision.row < 0:
        record["fitError"] = decision.fit_error()
        record |= _preemption(outcome) if outcome is not None else {}
    record["devices"] = _devices(decision)
    if columns is not None:
        record |= _scores(columns, [names[row] for row in np.flatnonzero(feasible).tolist()])
    record["rules"] = _rules(decision, policies, feasible)
    return {key: value for key, value in record.items() if value not in ({}, [])}


def _preemption(outcome: PostFilterResult) -> Record:
    """Say which pods would make room on which node and what that costs, or why none do."""
    if outcome.status is not None:
        message = outcome.status.message
        return {"preemption": {"message": message, **_details(outcome)}} if message else {}
    told = _details(outcome)
    victims = [one.key for one in outcome.victims if one.metadata.deletion_timestamp is None]
    return {
        "nominated": {"node": outcome.nominated_node, "victims": victims},
        "preemption": {key: value for key, value in told.items() if value},
    }


def _details(outcome: PostFilterResult) -> Record:
    details = outcome.details
    return details.describe() if isinstance(details, PreemptionDetails | Guarded) else {}


def _devices(decision: Decision) -> Record:
    """Say which devices the pod's claims have, or would get, on the selected node."""
    plugin = plugin_of_devices(decision)
    if plugin is None or decision.row < 0:
        return {}
    taken = plugin.devices_on(decision.pod, decision.node, decision.cluster)
    return {claim.metadata.name: [_device(one) for one in got.devices.results] for claim, got in taken}


def _refused_devices(decision: Decision, rejected: Mapping[str, Any]) -> Record:
    """Say of the first nodes without the devices that claims need what stands against those that they have."""
    plugin = plugin_of_devices(decision)
    if plugin is None:
        return {}
    reasons = list(NO_DEVICES.reasons)
    nodes = [node for node, why in rejected.items() if why["plugin"] == plugin.name and why["reasons"] == reasons]
    told = {node: plugin.refusals_on(decision.pod, node, decision.cluster) for node in sorted(nodes)[:MOST_EXPLAINED]}
    return {node: [_refusal(*one) for one in refusals] for node, refusals in told.items()}


def _refusal(claim: ResourceClaim, refusals: Refusals) -> Record:
    told: Record = {"claim": claim.metadata.name, "request": refusals.request, "fitting": refusals.fitting}
    return told | {"asked": refusals.asked or "all", "refused": dict(sorted(refusals.reasons.items()))}


def plugin_of_devices(decision: Decision) -> DynamicResources | None:
    """Return the plugin that takes devices for pods, None where the profile has none."""
    plugins = decision.evaluation.profile.reserves
    return next((one for one in plugins if isinstance(one, DynamicResources)), None)


def _device(result: DeviceResult) -> Record:
    told: Record = {
        "request": result.request, "driver": result.driver, "pool": result.pool, "device": result.device,
    }  # fmt: skip
    return told | ({"consumedCapacity": dict(result.consumed_capacity)} if result.consumed_capacity else {})


def _result(decision: Decision) -> str:
    if decision.failed:
        return "Error"
    return "Scheduled" if decision.row >= 0 else "Unschedulable"


def feasible_nodes(decision: Decision) -> Mask:
    """Return which nodes the pod may go to; the nominated one alone where it fits. Shapes: (N,)."""
    size = decision.cluster.nodes.size
    if decision.rejection is not None:
        return np.zeros(size, np.bool_)
    if decision.nominated:
        chosen: Mask = np.arange(size) == decision.row
        return chosen
    return decision.evaluation.feasible()


def _status(status: Status) -> dict[str, Any]:
    return {"plugin": status.plugin, "code": status.code.text, "reasons": list(status.reasons)}


def _rejected(decision: Decision) -> dict[str, Any]:
    """Say why each node is out; nodes that are out for the same reason share what is said."""
    if decision.nominated:
        return {}
    nodes, evaluation = decision.cluster.nodes, decision.evaluation
    first = evaluation.first[: nodes.size]
    told = np.empty(first.size, np.object_)
    for position in sorted(set(first[first > FEASIBLE].tolist())):
        codes, rows = evaluation.filters[position - 1].codes, np.flatnonzero(first == position)
        for code in sorted(set(codes[rows].tolist())):
            alike = rows[codes[rows] == code]
            status = _status(evaluation.status(int(alike[0])))
            for row in alike.tolist():
                told[row] = status
    nominated = decision.rejected_nomination()
    if nominated is not None:
        told[nominated[0]] = _status(nominated[1])
    return {nodes.names[row]: told[row] for row in np.flatnonzero(first > FEASIBLE).tolist()}


@dataclass(frozen=True, slots=True)
class Columns:
    """The final scores of the feasible nodes, by plugin."""

    by_plugin: dict[str, list[int]]
    tiers: tuple[int, ...]
    """The tiers of these plugins."""
    scored: bool
    """Whether the profile scores at all."""


def _columns(decision: Decision, feasible: Mask) -> Columns | None:
    """Read the scores; None where there are none."""
    evaluation = decision.evaluation
    evaluation.score()
    some = bool(feasible.any())
    if some and evaluation.out_of_tree is not None and evaluation.out_of_tree.scores:
        evaluation = with_out_of_tree_scores(evaluation, evaluation.out_of_tree)
    if not some or evaluation.failed_score() is not None:
        return None
    shown = [one for one in evaluation.scores if not one.left_out]
    by_plugin = {one.plugin.name: one.final(feasible)[feasible].tolist() for one in shown}
    return Columns(by_plugin, tuple(one.tier for one in shown), evaluation.scored)


def _scores(columns: Columns, nodes: Sequence[str]) -> Record:
    plugins, by_node = tuple(columns.by_plugin), zip(*columns.by_plugin.values(), strict=True)
    if not plugins:
        return {"scores": {}, "total": dict.fromkeys(nodes, 0 if columns.scored else 1)}
    scores, total, tiers = {}, {}, {}
    higher = sorted({*columns.tiers} - {0}, reverse=True)
    for node, parts in zip(nodes, by_node, strict=True):
        scores[node] = dict(zip(plugins, parts, strict=True))
        total[node] = sum(parts) if columns.scored else 1
        if higher:
            tiers[node] = {str(tier): _sum(tier, columns.tiers, parts) for tier in higher}
            total[node] -= sum(tiers[node].values())
    return {"scores": scores, "total": total, "tiers": tiers}


def _sum(tier: int, tiers: Sequence[int], parts: Sequence[int]) -> int:
    return sum(part for part, one in zip(parts, tiers, strict=True) if one == tier)


def _rules(decision: Decision, policies: Sequence[PolicyPlugin], feasible: Mask) -> Record:
    said: Record = {}
    for policy in sorted(policies, key=lambda policy: policy.policy.key):
        parts = describe(policy, decision.pod, decision.cluster, feasible)
        if parts is not None:
            said[policy.policy.key] = parts
    return said
