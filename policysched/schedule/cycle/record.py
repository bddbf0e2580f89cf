"""The decision record: the results of a scheduling cycle as a plain dict, for users, programs and tests.

A record is built on request only. Empty keys are omitted.
`docs/reference/decision-record.md` describes the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from policysched.devices import Refusals
from policysched.framework import Mask, PostFilterResult, Status
from policysched.model.objects import DeviceResult, ResourceClaim
from policysched.plugins.default_preemption.guards import Guarded
from policysched.plugins.default_preemption.plugin import PreemptionDetails
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from policysched.plugins.dynamic_resources.pod_claims import NO_DEVICES
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.record import describe
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.per_pod_results import with_out_of_tree_scores
from policysched.schedule.cycle.results.rejections import FEASIBLE

Record = dict[str, Any]
Observe = Callable[[Decision, Sequence[ActivePolicy]], object]
"""Callback that receives a decision and the policies that applied."""
MOST_EXPLAINED: Final = 20
"""Maximum number, in one record, of nodes with reasons against devices and of group members with their own record."""


def make_record(
    decision: Decision, policies: Sequence[ActivePolicy] = (), outcome: PostFilterResult | None = None
) -> Record:
    """Return the decision record of a decision; call it before the cluster changes.

    Args:
        decision: The decision.
        policies: The policies to describe, including Shadow policies.
        outcome: The result of PostFilter if no node is feasible.
    """
    pod = decision.pod
    record: Record = {"pod": pod.key, "schedulerName": pod.spec.scheduler_name}
    record |= {"reference": decision.cluster.release.minor, "result": _result(decision)}
    if decision.failed:
        record["error"] = decision.error()
        return record
    feasible, names = feasible_nodes(decision), decision.cluster.nodes.names
    if decision.row >= 0:
        record["selected"] = decision.node
        record["best"] = sorted(names[row] for row in decision.best)
    columns: Columns | None = None
    if decision.rejection is not None:
        record["preFilter"] = status_record(decision.rejection)
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
    """Return the preemption part of a record: nominated node and victims, or the reason why there is no preemption."""
    if outcome.status is not None and not outcome.succeeded:
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
    """Return the devices that the pod's resource claims have, or would get, on the selected node."""
    plugin = plugin_of_devices(decision)
    if plugin is None or decision.row < 0:
        return {}
    taken = plugin.devices_on(decision.pod, decision.node, decision.cluster)
    return {claim.metadata.name: [_device(one) for one in got.devices.results] for claim, got in taken}


def _refused_devices(decision: Decision, rejected: Mapping[str, Any]) -> Record:
    """Return, for the first nodes that lack devices for the pod's claims, why the devices of the nodes do not fit."""
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
    """Return the DynamicResources plugin of the decision's profile; None if it is not enabled."""
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
    """Return a mask of the feasible nodes; if the pod fits its nominated node, only that node. Shapes: (N,)."""
    size = decision.cluster.nodes.size
    if decision.rejection is not None:
        return np.zeros(size, np.bool_)
    if decision.nominated:
        chosen: Mask = np.arange(size) == decision.row
        return chosen
    return decision.evaluation.feasible()


def status_record(status: Status) -> dict[str, Any]:
    """Return a dict with the plugin, code and reasons of a status."""
    return {"plugin": status.plugin, "code": status.code.text, "reasons": list(status.reasons)}


def _rejected(decision: Decision) -> dict[str, Any]:
    """Return the record entry of each rejected node, by name; nodes with equal statuses share one dict."""
    if decision.nominated:
        return {}
    nodes, evaluation = decision.cluster.nodes, decision.evaluation
    first = evaluation.first[: nodes.size]
    told = np.empty(first.size, np.object_)
    for place in sorted(set(first[first > FEASIBLE].tolist())):
        codes, rows = evaluation.filter_at(place).codes, np.flatnonzero(first == place)
        for code in sorted(set(codes[rows].tolist())):
            alike = rows[codes[rows] == code]
            status = status_record(evaluation.status(int(alike[0])))
            for row in alike.tolist():
                told[row] = status
    nominated = decision.rejected_nomination()
    if nominated is not None:
        told[nominated[0]] = status_record(nominated[1])
    return {nodes.names[row]: told[row] for row in np.flatnonzero(first > FEASIBLE).tolist()}


@dataclass(frozen=True, slots=True)
class Columns:
    """The final scores of the feasible nodes by plugin, one column for each plugin."""

    by_plugin: dict[str, list[int]]
    tiers: tuple[int, ...]
    """The tier of each plugin."""
    is_scored: bool
    """Whether any plugin scores."""


def _columns(decision: Decision, feasible: Mask) -> Columns | None:
    """Return the final scores of the feasible nodes; None if no node is feasible or a plugin failed."""
    if not feasible.any() or decision.evaluation.score_failure is not None:
        return None
    evaluation = with_out_of_tree_scores(decision.evaluation)
    if isinstance(evaluation, Status):
        return None
    evaluation.of_class.score()  # a nominated node that was narrowed away may be the only feasible one
    if evaluation.score_out_of_range() is not None:
        return None
    shown = [one for one in evaluation.score_parts() if not one.left_out]
    by_plugin = {one.plugin.name: one.final(feasible)[feasible].tolist() for one in shown}
    return Columns(by_plugin, tuple(one.tier for one in shown), evaluation.is_scored)


def _scores(columns: Columns, nodes: Sequence[str]) -> Record:
    plugins, by_node = tuple(columns.by_plugin), zip(*columns.by_plugin.values(), strict=True)
    if not plugins:
        return {"scores": {}, "total": dict.fromkeys(nodes, 0 if columns.is_scored else 1)}
    scores, total, tiers = {}, {}, {}
    higher = sorted({*columns.tiers} - {0}, reverse=True)
    for node, parts in zip(nodes, by_node, strict=True):
        scores[node] = dict(zip(plugins, parts, strict=True))
        total[node] = sum(parts) if columns.is_scored else 1
        if higher:
            tiers[node] = {str(tier): _sum(tier, columns.tiers, parts) for tier in higher}
            total[node] -= sum(tiers[node].values())
    return {"scores": scores, "total": total, "tiers": tiers}


def _sum(tier: int, tiers: Sequence[int], parts: Sequence[int]) -> int:
    return sum(part for part, one in zip(parts, tiers, strict=True) if one == tier)


def _rules(decision: Decision, policies: Sequence[ActivePolicy], feasible: Mask) -> Record:
    said: Record = {}
    for policy in sorted(policies, key=lambda policy: policy.policy.key):
        parts = describe(policy, decision.pod, decision.cluster, feasible)
        if parts is not None:
            said[policy.policy.key] = parts
    return said
