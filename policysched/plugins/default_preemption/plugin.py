"""DefaultPreemption: the plugin at PostFilter and PreEnqueue.

Knows no other plugin: whether the pod would fit is asked through the decision's what-if, so everything that filters
takes part, policies and volumes, too. It looks at every node that preemption may help on, where kube-scheduler by
default looks at 10 % of them, and at 100 at least: the numbers of candidates in its arguments are minima. Extenders are
asked about as many candidates as there: each is sent with its pods.

Source: plugins/defaultpreemption/default_preemption.go, pkg/scheduler/framework/preemption/preemption.go,
pkg/scheduler/apis/config/validation/validation_pluginargs.go, v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from policysched.framework import (
    Action,
    Change,
    Cluster,
    Code,
    FailedDecision,
    Handle,
    Hint,
    Plugin,
    PostFilterResult,
    Resource,
    Status,
    unresolvable,
)
from policysched.framework.extender import ExtenderError, NodeVictims
from policysched.framework.status import filter_error
from policysched.late_dataclass import dataclass
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.arguments import Fault, Int32, PluginArguments
from policysched.plugins.default_preemption.budgets import Budgets
from policysched.plugins.default_preemption.candidates import Candidate, Choice, choice_of
from policysched.plugins.default_preemption.eviction import (
    Evictions,
    Preemption,
    is_going_for_another,
    lower_nominated,
)
from policysched.plugins.default_preemption.extenders import NONE_LEFT, ask_extenders, least_costly, without_guarded
from policysched.plugins.default_preemption.guards import Guarded, ask_about
from policysched.plugins.default_preemption.reprieve import Places
from policysched.plugins.default_preemption.search import Search, answers_together, lower_on, search_victims
from policysched.plugins.default_preemption.slices import SearchInSlices, guards_take_long
from policysched.plugins.default_preemption.steps import Pauses, search_in_steps, takes_steps

DEFAULT_PREEMPTION: Final = "DefaultPreemption"
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NEVER: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
HELD_BACK: Final = unresolvable("waiting for the preemption for this pod to be finished")
CHANGED: Final = "the pod may fit now: the cluster changed during the search for victims."
MOST_ROUNDS: Final = 3
"""How often it is found out with pauses what budgets select, where budgets or labels change meanwhile."""
PERCENTAGE, ABSOLUTE = 10, 100
"""The defaults of the arguments; with them every node is looked at."""


class PreemptionArguments(PluginArguments, frozen=True):
    """The arguments of DefaultPreemption.

    With the defaults all candidates are looked for, unless extenders are asked about them. Other values bound the
    search as kube-scheduler's is bounded.
    """

    min_candidate_nodes_percentage: Int32 = PERCENTAGE
    min_candidate_nodes_absolute: Int32 = ABSOLUTE

    def faults(self) -> Iterator[Fault]:
        """Name fields that are not valid, and why."""
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        if not 0 <= percentage <= 100:
            yield "minCandidateNodesPercentage", f"{percentage} is not between 0 and 100"
        if absolute < 0:
            yield "minCandidateNodesAbsolute", f"{absolute} is less than 0"
        if percentage == absolute == 0:
            yield "minCandidateNodesPercentage", "cannot be 0 together with minCandidateNodesAbsolute"
            yield "minCandidateNodesAbsolute", "cannot be 0 together with minCandidateNodesPercentage"

    def most_candidates(self, nodes: int, *, extended: bool) -> int:
        """Return after how many candidates on so many nodes the search may end; fewer where extenders are asked."""
        if not extended and (self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute) == (
            PERCENTAGE,
            ABSOLUTE,
        ):
            return nodes
        share = nodes * self.min_candidate_nodes_percentage // 100
        return min(max(share, self.min_candidate_nodes_absolute), nodes)


@dataclass(frozen=True, slots=True)
class PreemptionDetails:
    """What records tell of a preemption; read it before the cluster changes."""

    node: str
    choice: Choice
    budgets: Budgets
    cleared: Sequence[Pod]
    """The pods that the node is not kept for any more."""
    guarded: Guarded | None = None
    """What guards said of the pods of lower priority."""

    def describe(self) -> dict[str, Any]:
        """Say what each victim costs, and why other candidates lost."""
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


class DefaultPreemption:
    """The plugin.

    Args:
        given: Its arguments.
    """

    name = DEFAULT_PREEMPTION

    def __init__(self, given: PreemptionArguments | None = None) -> None:
        self._given = given or PreemptionArguments()
        self._evictions = Evictions(self.name)
        self._budgets: Budgets | None = None

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:  # noqa: ARG002 - the protocol's signature
        """Keep a pod out whose victims are being deleted just now."""
        return HELD_BACK if self._evictions.holds_back(pod) else None

    def take_over(self, before: Plugin) -> None:
        """Know of the preemptions that are under way."""
        if isinstance(before, DefaultPreemption):
            self._evictions = before._evictions

    def events(self) -> Sequence[Hint]:
        """Name the deletion of pods, which alone helps no pod: other plugins say which one does."""
        return (Hint(Resource.ASSIGNED_POD, Action.DELETE, _never_helps),)

    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Find the node where making room costs least, and the pods that have to go there."""
        why_not = _ineligible(pod, failed)
        if why_not:
            return _said(Code.UNSCHEDULABLE, why_not)
        if self._renewed_budgets(failed.cluster).are_many:
            return PostFilterResult(ask=partial(self._search_prepared, pod, failed))
        return self._search(pod, failed)

    async def _search_prepared(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Find out with pauses what budgets select, then search; budgets and labels that come meanwhile are few."""
        cluster, changed = failed.cluster, True
        for _ in range(MOST_ROUNDS):
            if not changed:
                break
            changed = False
            slots = lower_on(cluster, pod_priority(pod), failed.rows_with(Code.UNSCHEDULABLE))
            for _ in self._renewed_budgets(cluster).preparing(cluster, slots):
                changed |= await failed.pause()
                if not failed.holds:
                    return _said(Code.UNSCHEDULABLE, CHANGED)
        result = self._search(pod, failed)
        return result if result.ask is None else await result.ask()

    def _search(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Look for victims on all nodes."""
        cluster = failed.cluster
        rows = failed.rows_with(Code.UNSCHEDULABLE)
        long = guards_take_long(failed)
        if takes_steps(failed) and not long:
            return PostFilterResult(ask=partial(self._search_in_steps, pod, failed))
        together = answers_together(failed)
        if long or not together:
            return PostFilterResult(ask=partial(self._search_on, pod, failed, together=together))
        budgets = self._renewed_budgets(cluster)
        found = search_victims(failed, pod_priority(pod), rows, budgets, cluster.time.seconds)
        return self._chosen(pod, failed, found, budgets)

    def _chosen(self, pod: Pod, failed: FailedDecision, found: Search, budgets: Budgets) -> PostFilterResult:
        """Choose among the candidates of a search on all nodes together."""
        cluster = failed.cluster
        candidates = self._bounded(found, failed, found.rows.size + found.empty_rows.size)
        if not candidates.size:
            return _no_candidate(found.failures(), found.guarded, cluster.nodes.count)
        choice = choice_of(found, candidates)
        if failed.extenders:
            return PostFilterResult(ask=partial(self._ask, pod, failed, choice, found.failures()))
        node = failed.rng.choice(choice.best)
        details = PreemptionDetails(node, choice, budgets, lower_nominated(cluster, pod, node), found.guarded)
        return self._result(pod, cluster, node, choice.victims_on(node), details)

    def _renewed_budgets(self, cluster: Cluster) -> Budgets:
        self._budgets = Budgets(cluster, self._budgets)
        return self._budgets

    async def _search_in_steps(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        """Look at all nodes together, with pauses."""
        budgets = self._renewed_budgets(failed.cluster)
        rows = failed.rows_with(Code.UNSCHEDULABLE)
        answer = await search_in_steps(failed, rows, budgets, Pauses(failed))
        if answer is None:
            return _said(Code.UNSCHEDULABLE, CHANGED)
        found, is_whole = answer
        if not is_whole:
            return await self._search_on(pod, failed, together=False)
        result = self._chosen(pod, failed, found, budgets)
        return result if result.ask is None else await result.ask()

    async def _search_on(self, pod: Pod, failed: FailedDecision, *, together: bool) -> PostFilterResult:
        """Look at some nodes after others, with pauses; those of a slice together if filters answer so."""
        cluster = failed.cluster
        search = SearchInSlices(failed, self._renewed_budgets, together=together)
        rows = failed.rows_with(Code.UNSCHEDULABLE).tolist()
        most = self._given.most_candidates(len(rows), extended=bool(failed.extenders))
        if most < len(rows):
            begin = failed.rng.randrange(len(rows))
            rows = rows[begin:] + rows[:begin]
        chosen = await search.choose() if await search.run(rows, most) else None
        guarded = search.guarded
        if not failed.holds:
            return _said(Code.UNSCHEDULABLE, CHANGED)
        if chosen is None:
            return _no_candidate(search.failures, guarded, cluster.nodes.count)
        node, choice = chosen
        if failed.extenders:
            return await self._ask(pod, failed, choice, search.failures)
        details = PreemptionDetails(node, choice, search.budgets, lower_nominated(cluster, pod, node), guarded)
        return self._result(pod, cluster, node, choice.victims_on(node), details)

    async def _ask(
        self, pod: Pod, failed: FailedDecision, choice: Choice, statuses: Counter[Status]
    ) -> PostFilterResult:
        """Choose among what extenders leave of the candidates; `statuses` are those of the other nodes."""
        candidates = {one.node: NodeVictims(one.victims, len(one.violating)) for one in choice.candidates()}
        try:
            left = await ask_extenders(pod, failed.extenders, candidates, failed.cluster)
        except ExtenderError as error:
            return _said(Code.ERROR, str(error))
        guarded = ask_about(failed, [one for victims in left.values() for one in victims.pods])
        left = without_guarded(pod, left, guarded)
        if not left:
            return _none_left(guarded, statuses)
        node = failed.rng.choice(least_costly(left, failed.cluster))
        return self._result(pod, failed.cluster, node, left[node].pods)

    def _result(
        self, pod: Pod, cluster: Cluster, node: str, victims: Sequence[Pod], details: PreemptionDetails | None = None
    ) -> PostFilterResult:
        going = [one for one in victims if one.metadata.deletion_timestamp is None]
        if not going:
            return PostFilterResult(None, node, victims=victims, details=details)

        def act(handle: Handle) -> Awaitable[bool]:
            return self._evictions.start(Preemption(pod, node, going, cluster), handle)

        return PostFilterResult(None, node, act, victims, details)

    def _bounded(self, found: Search, failed: FailedDecision, potential: int) -> Places:
        """Return the candidates that are enough, beginning anywhere: one that violates nothing, and so many in all."""
        candidates = found.candidates
        most = self._given.most_candidates(potential, extended=bool(failed.extenders))
        if candidates.size <= most:
            return candidates
        turned = np.roll(candidates, failed.rng.randrange(candidates.size))
        violates = found.sum_up((found.victims & found.violating).astype(np.int64))[turned] > 0
        enough = (np.cumsum(~violates) > 0) & (np.arange(1, turned.size + 1) >= most)
        return np.sort(turned[: int(enough.argmax()) + 1] if enough.any() else turned)


def _never_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    return False


def _ineligible(pod: Pod, failed: FailedDecision) -> str:
    """Say why a pod may not preempt others now; empty where it may."""
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


def _no_candidate(statuses: Counter[Status], guarded: Guarded | None, nodes: int) -> PostFilterResult:
    """Say of all nodes why preemption does not help there; no node is kept for the pod any more.

    Nodes that went after they were asked about count too.
    """
    nodes = max(nodes, statuses.total())
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
    """Say that extenders left no candidate, or named victims alone that have to stay."""
    why = ", ".join(guarded.examples().values())
    said = _said(Code.UNSCHEDULABLE, f"{NONE_LEFT}: {why}" if why else NONE_LEFT)
    return replace(said, details=guarded, rejectors=guarded.names, rejecting_anyway=_rejecting_anyway(statuses))


def _rejecting_anyway(statuses: Counter[Status]) -> frozenset[str]:
    """Name the plugins that reject the pod whichever pods go."""
    return frozenset(one.plugin for one in statuses if one.plugin)


def _said(code: Code, text: str) -> PostFilterResult:
    return PostFilterResult(Status(code, (f"preemption: {text}",)))
