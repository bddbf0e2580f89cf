"""The DefaultPreemption plugin with its extension points PostFilter and PreEnqueue.

It knows no other plugin: the what-if of the decision evaluates all filters, policies and volumes included. By default
it searches every node that preemption may help, where kube-scheduler searches 10 % of them and at least 100 (the
numbers of candidates in its arguments are minima). Extenders receive as many candidates as in kube-scheduler, because
each candidate is sent with its pods.

Source: plugins/defaultpreemption/default_preemption.go, pkg/scheduler/framework/preemption/preemption.go,
pkg/scheduler/apis/config/validation/validation_pluginargs.go, v1.36, v1.37 and v1.38.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from policysched.framework import (
    Action,
    Change,
    Cluster,
    Code,
    FailedDecision,
    Handle,
    Hint,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    Resource,
    Status,
    unresolvable,
)
from policysched.framework.extender import ExtenderError, NodeVictims
from policysched.framework.pod_groups import PodGroupPostFilterPlugin, PodGroupPostFilterResult, RejectedGroup
from policysched.framework.status import filter_error
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.arguments import Fault, Int32, PluginArguments
from policysched.plugins.default_preemption.budgets import BudgetRules, Budgets
from policysched.plugins.default_preemption.candidates import (
    NONE_LEFT,
    Candidate,
    Choice,
    ask_extenders,
    least_costly,
    proposals,
    without_guarded,
)
from policysched.plugins.default_preemption.eviction import (
    Evictions,
    Preemption,
    Preemptor,
    is_going_for_another,
    lower_nominated,
)
from policysched.plugins.default_preemption.for_groups import NEVER, GroupRules, search_for_group
from policysched.plugins.default_preemption.guards import Guarded, ask_about
from policysched.plugins.default_preemption.search import ANY_ORDER, Search, SearchRules, search_victims
from policysched.state.placed.pods import pod_id

DEFAULT_PREEMPTION: Final = "DefaultPreemption"
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
HELD_BACK: Final = unresolvable("waiting for the preemption for this pod to be finished")
GROUP_HELD_BACK: Final = unresolvable("waiting for the preemption for this pod group to be finished")
PERCENTAGE, ABSOLUTE = 10, 100
"""Default arguments of DefaultPreemption; with these values, the search for victims covers every node."""


class PreemptionArguments(PluginArguments, frozen=True):
    """The arguments of DefaultPreemption.

    The default values search all nodes, unless extenders take part. Other values limit the search as in
    kube-scheduler.
    """

    min_candidate_nodes_percentage: Int32 = PERCENTAGE
    min_candidate_nodes_absolute: Int32 = ABSOLUTE

    def faults(self) -> Iterator[Fault]:
        """Yield the invalid fields of the arguments, each with the reason."""
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= percentage <= 100:
            yield "minCandidateNodesPercentage", f"{percentage} is not between 0 and 100"
        if absolute < 0:
            yield "minCandidateNodesAbsolute", f"{absolute} is less than 0"
        if percentage == absolute == 0:
            yield "minCandidateNodesPercentage", "cannot be 0 together with minCandidateNodesAbsolute"
            yield "minCandidateNodesAbsolute", "cannot be 0 together with minCandidateNodesPercentage"

    def most_candidates(self, nodes: int, *, extended: bool) -> int:
        """Return the number of candidate nodes after which the search stops; smaller if extenders are called."""
        if not extended and (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute) == (
            PERCENTAGE,
            ABSOLUTE,
        ):
            return nodes
        share = nodes * self.min_candidate_nodes_percentage // 100
        return min(max(share, self.min_candidate_nodes_absolute), nodes)


@dataclass(frozen=True, slots=True)
class PreemptionDetails:
    """Details of a preemption for the decision record; read it before the cluster changes."""

    node: str
    choice: Choice
    budgets: Budgets
    cleared: Sequence[Pod]
    """The pods of lower priority whose nomination to the preempting pod's node is cleared."""
    guarded: Guarded | None = None
    """The pods of lower priority that victim guards (policies) protect; None if there is no victim guard."""

    def describe(self) -> dict[str, Any]:
        """Return the cost of each victim, and why other candidate nodes are worse, for the decision record."""
        candidates = {one.node: one for one in self.choice.candidates()}
        chosen = candidates.pop(self.node)
        return {
            "victims": {one.key: self._cost(one, chosen) for one in chosen.victims},
            "others": {
                one.node: {"victims": [pod.key for pod in one.victims], "why": one.loses_by or "equally good"}
                for one in candidates.values()
            },
            "cleared": [one.key for one in self.cleared],
            **({} if self.guarded is None else self.guarded.describe()),
        }

    def _cost(self, victim: Pod, chosen: Candidate) -> dict[str, Any]:
        cost: dict[str, Any] = {"priority": pod_priority(victim)}
        budgets = [one.name for one in self.budgets.of(victim)]
        if budgets:
            cost |= {"budgets": budgets, "violates": victim.key in chosen.violating}
        if victim.metadata.deletion_timestamp is not None:
            cost["terminating"] = True
        return cost


def _never_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    return False


class DefaultPreemption(PreEnqueuePlugin, PostFilterPlugin, PodGroupPostFilterPlugin):
    """The DefaultPreemption plugin: makes room for a pod by evicting pods of lower priority.

    Args:
        given: The arguments.
        rules: How disruption budgets protect pods.
        searching: How victims are chosen.
        reports_node: Whether the message of a preempting pod names the node and the number of victims.
        for_groups: How pod groups preempt.
        retries_at_once: Whether a preemptor is retried without backoff if its last victim was not bound yet.
    """

    name = DEFAULT_PREEMPTION
    hints = (Hint(Resource.ASSIGNED_POD, Action.DELETE, _never_helps),)
    """A queueing hint for deleted pods that never requeues: the hints of the filter plugins decide about retries."""

    def __init__(
        self,
        given: PreemptionArguments | None = None,
        rules: BudgetRules | None = None,
        *,
        searching: SearchRules = ANY_ORDER,
        reports_node: bool = False,
        for_groups: GroupRules | None = None,
        retries_at_once: bool = False,
    ) -> None:
        self._given = given or PreemptionArguments()
        self._rules = rules or BudgetRules()
        self._searching = searching
        self._reports_node, self._group_rules = reports_node, for_groups or GroupRules()
        self._evictions = Evictions(self.name, retries_at_once=retries_at_once)
        self._budgets: Budgets | None = None

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        """Gate a pod while victims of its own preemption, or of its pod group's preemption, are still to be deleted."""
        state = None if cluster.pod_groups is None else cluster.pod_groups.of_pod(pod)
        if state is None:
            return HELD_BACK if self._evictions.holds_back(pod_id(pod)) else None
        group = state.group
        return GROUP_HELD_BACK if group is not None and self._evictions.holds_back(group.metadata.uid) else None

    def take_over(self, before: Plugin) -> None:
        """Continue the running preemptions of the plugin that this plugin replaces."""
        if isinstance(before, DefaultPreemption):
            self._evictions = before._evictions

    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Return the node where preemption costs least and the pods to evict there, or why preemption is impossible."""
        why_not = _ineligible(pod, failed)
        if why_not:
            return _said(Code.UNSCHEDULABLE, why_not)
        cluster = failed.cluster
        budgets = self._budgets = Budgets(cluster, self._budgets, self._rules)
        rows = failed.rows_with(Code.UNSCHEDULABLE)
        most = self._given.most_candidates(rows.size, extended=bool(failed.extenders))
        found = search_victims(failed, rows, budgets, most, self._searching)
        if not found.candidates.size:
            return _no_candidate(found)
        if failed.extenders:
            return PostFilterResult(ask=partial(self._ask_extenders, pod, failed, proposals(found), found.failures()))
        choice = Choice(found)
        node = failed.rng.choice(choice.best)
        cleared = lower_nominated(cluster, pod_priority(pod), (node,))
        details = PreemptionDetails(node, choice, budgets, cleared, found.guarded)
        return self._result(pod, cluster, node, choice.victims_on(node), details)

    async def _ask_extenders(
        self, pod: Pod, failed: FailedDecision, candidates: dict[str, NodeVictims], statuses: Counter[Status]
    ) -> PostFilterResult:
        """Return the best candidate node that extenders keep; `statuses` counts rejections of the other nodes.

        Guards are evaluated again: an extender may have named other victims, and the cluster may have changed.
        """
        try:
            left = await ask_extenders(pod, failed.extenders, candidates, failed.cluster)
        except ExtenderError as error:
            return _said(Code.ERROR, str(error))
        guarded = ask_about(failed, {node: victims.pods for node, victims in left.items()})
        left = without_guarded(pod, left, guarded)
        if not left:
            return _none_left(guarded, statuses)
        node = failed.rng.choice(least_costly(left, failed.cluster))
        return self._result(pod, failed.cluster, node, left[node])

    def pod_group_post_filter(self, rejected: RejectedGroup) -> PodGroupPostFilterResult:
        """Return the pods to evict so that a pod group fits, with the members' nominated nodes."""
        self._budgets = Budgets(rejected.cluster, self._budgets, self._rules)
        found = search_for_group(rejected, self._budgets, self._searching, self._group_rules)
        going = [one for one in found.victims if one.metadata.deletion_timestamp is None]
        if not going:
            return found
        nodes = dict.fromkeys(found.nominated.values()) if self._group_rules.clears_nominations else {}
        preemptor = Preemptor(rejected.group, rejected.pods)
        return replace(found, act=self._act(Preemption(preemptor, "cluster", tuple(nodes), going, rejected.cluster)))

    def _act(self, preemption: Preemption) -> Callable[[Handle], Awaitable[bool]]:
        return lambda handle: self._evictions.start(preemption, handle)

    def _result(
        self, pod: Pod, cluster: Cluster, node: str, chosen: NodeVictims, details: PreemptionDetails | None = None
    ) -> PostFilterResult:
        victims, violations = chosen.pods, chosen.pdb_violations
        text = f"found a potential placement for pod on node {node}, preempting {len(victims)} victims"
        status = Status(Code.SUCCESS, (f"preemption: {text}",)) if self._reports_node else None
        going = [one for one in victims if one.metadata.deletion_timestamp is None]
        if not going:
            return PostFilterResult(status, node, victims=victims, details=details, violations=violations)
        act = self._act(Preemption(Preemptor(pod, (pod,)), node, (node,), going, cluster))
        return PostFilterResult(status, node, act, victims, details, violations=violations)


def _ineligible(pod: Pod, failed: FailedDecision) -> str:
    """Return why a pod may not preempt other pods now; empty if the pod may preempt."""
    if pod.spec.preemption_policy == "Never":
        return NEVER
    name = pod.status.nominated_node_name
    status = failed.status_of(name) if name else None
    if status is None or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    cluster, priority = failed.cluster, pod_priority(pod)
    there = (placed.pod for placed in cluster.pods.on_row(cluster.nodes.row_of[name]))
    waits = any(pod_priority(one) < priority and is_going_for_another(one) for one in there)
    return TERMINATING if waits else ""


def _no_candidate(found: Search) -> PostFilterResult:
    """Return the result of a search without candidate node; the result clears the pod's nomination."""
    statuses, guarded, nodes = found.failures(), found.guarded, found.cluster.nodes.count
    failed = (one for one in statuses if one.code is Code.ERROR)
    errors = list(dict.fromkeys(filter_error(one) if one.plugin else one.message for one in failed))
    if errors:
        return _said(Code.ERROR, errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    reasons: Counter[str] = Counter()
    for status, count in statuses.items():
        for reason in status.reasons:
            reasons[reason] += count
    reasons[NOT_HELPFUL] += nodes - statuses.total()
    told, guards = ({}, frozenset()) if guarded is None else (guarded.examples(), guarded.names)
    parts = sorted(f"{count} {told.get(reason, reason)}" for reason, count in reasons.items() if count)
    text = f"0/{nodes} nodes are available: {', '.join(parts)}."
    said = _said(Code.UNSCHEDULABLE, text)
    anyway = _rejecting_anyway(statuses)
    return replace(said, nominated_node="", details=guarded, rejectors=guards, rejecting_anyway=anyway)


def _none_left(guarded: Guarded, statuses: Counter[Status]) -> PostFilterResult:
    """Return the result if extenders kept no candidate node, or only candidate nodes with protected victims."""
    why = ", ".join(guarded.examples().values())
    said = _said(Code.UNSCHEDULABLE, f"{NONE_LEFT}: {why}" if why else NONE_LEFT)
    return replace(said, details=guarded, rejectors=guarded.names, rejecting_anyway=_rejecting_anyway(statuses))


def _rejecting_anyway(statuses: Counter[Status]) -> frozenset[str]:
    """Return the plugins that reject the pod on a node even without the pods of lower priority."""
    return frozenset(one.plugin for one in statuses if one.plugin)


def _said(code: Code, text: str) -> PostFilterResult:
    return PostFilterResult(Status(code, (f"preemption: {text}",)))
