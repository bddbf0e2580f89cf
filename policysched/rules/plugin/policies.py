"""The policies of a profile as plugins: one filter plugin for all policies, one score plugin per tier.

A plugin answers with one code or sum per row; `rows_of` returns the results by policy. A policy with a normalising rule
is a score plugin of its own, because its scores depend on all feasible nodes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Final

from policysched.framework import (
    SKIP,
    Aspect,
    BlockRow,
    ChangedRow,
    ChangedRows,
    Cluster,
    Codes,
    Incremental,
    Mask,
    Nothing,
    PluginBlock,
    RowNumbers,
    Rows,
    ScorePlugin,
    Scores,
    Status,
    WhatIfFilter,
)
from policysched.framework.plugin import StateT
from policysched.model.objects import Pod
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.results.blocks import FilterBlock, ScoreBlock
from policysched.rules.results.matrix import FilterMatrix, ScoreMatrix
from policysched.rules.results.normalized import NormalizedScores
from policysched.rules.results.pod_independent import PodIndependentResults
from policysched.rules.results.rule_rows import CODES, RuleRow

POLICIES: Final = "SchedulingPolicy"


class _Policies(Incremental[StateT]):
    """Base of the plugins that evaluate several policies of a profile.

    Args:
        members: The policies in their order, at least one.
        rules: Their rules at the extension point.
    """

    def __init__(self, members: Sequence[ActivePolicy], rules: Iterable[RuleRow]) -> None:
        self.name = POLICIES
        self._rules = tuple(rules)
        self._members = tuple(members)
        self._stamped = [one for one in members if one.has_stamps]
        self._by_name = {one.name: one for one in members}
        self.reads_own_namespace = any(one.reads_own_namespace for one in members)

    @property
    def members(self) -> tuple[ActivePolicy, ...]:
        """The policies, in the order in which rejections are reported."""
        return self._members

    def stamp(self, cluster: Cluster) -> Hashable:
        """Return a value; if it changes, the plugin's cached results for all pods are recomputed."""
        return tuple([one.stamp(cluster) for one in self._stamped])

    def evaluate(self, cluster: Cluster) -> None:
        """Evaluate the rules that do not read the pod on all nodes, so that the first decision does not have to."""
        self._results(cluster).use(self, self._rules)

    def _results(self, cluster: Cluster) -> PodIndependentResults:
        for one in self.members:
            found = one.results(cluster)
        return found


class PolicyFilters(_Policies[FilterBlock], PluginBlock[FilterBlock], WhatIfFilter[FilterBlock]):
    """The filters of all policies of a profile as one plugin."""

    def __init__(self, members: Sequence[ActivePolicy]) -> None:
        super().__init__(members, (rule for one in members for rule in one.filter_rows))
        self.filter_reads = _union(one.filter_reads for one in members)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> FilterBlock | Nothing | Status:
        """Return the filter results of a class of equal pods; a rejection while rules depend on an unknown namespace.

        A block has one row of results for each policy that applies to the pod class.
        """
        return self.prepare_after(None, pod, cluster)

    def prepare_after(self, before: FilterBlock | None, pod: Pod, cluster: Cluster) -> FilterBlock | Nothing | Status:
        """Return the filter results of a class of equal pods; reuse unchanged policies' results of an old profile."""
        results = self._results(cluster)
        context = results.context
        for one in self.members:
            waiting = one.selection.awaits(pod, context)
            if waiting is not None:
                return waiting.by(one.name)
        rules = {one.name: rows for one in self.members if (rows := one.filters_for(pod, context))}
        if not rules:
            return SKIP
        results.use(self, self._rules)
        inputs = context.inputs(pod) if before is None else before.matrix.pod
        return FilterBlock(self, FilterMatrix(results, inputs, rules), cluster.nodes.columns.capacity, before)

    def reads_of(self, state: FilterBlock) -> Aspect:
        """Return which changes of a node (`Aspect`) can change results of the policies that apply to the pods."""
        return _union(one.filter_reads for one in self.members_of(state))

    def rows_of(self, state: FilterBlock) -> list[BlockRow]:
        """Return by node the reason codes of each policy that rejected a node; `reason` converts codes to statuses."""
        return [BlockRow(self._by_name[name], codes) for name, codes in state.rejecting()]

    def members_of(self, state: FilterBlock) -> Sequence[ActivePolicy]:
        """Return the policies that apply to the class of pods."""
        return [self._by_name[name] for name in state.matrix.names]

    def affected_rows(self, state: FilterBlock, rows: RowNumbers) -> Rows:
        """Evaluate changed nodes and nodes whose shared values, such as aggregates, changed; return these nodes."""
        return state.update(rows)

    def filter(self, state: FilterBlock, rows: Rows) -> Codes:
        """Return for each node the reason code of the first policy that rejects the node, or 0."""
        return state.answers(rows)

    def filter_changed(self, state: FilterBlock, changed: ChangedRow) -> Status | None:
        """Return the status of the first policy that rejects a simulated node, else None."""
        code = state.changed_code(changed)
        return self.reason(state, code) if code else None

    def filter_changed_rows(self, state: FilterBlock, changed: ChangedRows) -> Codes | None:
        """Return the reason codes (0 accepts) of simulated nodes; None if nodes can only be evaluated one by one."""
        return state.matrix.changed_codes(changed)

    def reason(self, state: FilterBlock, code: int) -> Status:
        """Return the rejection status that a reason code stands for, with the policy and rule that rejected a node."""
        place, own = divmod(code, CODES)
        return self._by_name[state.matrix.names[place]].reason(own)


class PolicyScores(_Policies[ScoreBlock], PluginBlock[ScoreBlock], ScorePlugin[ScoreBlock]):
    """The scores of one tier's policies, without normalized scores, as one plugin with their weighted sum."""

    def __init__(self, members: Sequence[ActivePolicy]) -> None:
        super().__init__(members, (rule for one in members for rule in one.score_rows))
        self.score_reads = _union(one.score_reads for one in members)
        self.tier = members[0].tier
        self.name = f"{POLICIES} of tier {self.tier}"

    def prepare_score(self, pod: Pod, cluster: Cluster) -> ScoreBlock | Nothing:
        """Return the scores of a class of equal pods, by node and by policy that applies."""
        return self.prepare_after(None, pod, cluster)

    def prepare_after(self, before: ScoreBlock | None, pod: Pod, cluster: Cluster) -> ScoreBlock | Nothing:
        """Return the scores of a class of equal pods; reuse unchanged policies' scores of an old profile."""
        results = self._results(cluster)
        context = results.context
        rules = {one.name: rows for one in self.members if (rows := one.scores_for(pod, context))}
        if not rules:
            return SKIP
        results.use(self, self._rules)
        inputs = context.inputs(pod) if before is None else before.matrix.pod
        weights = [self._by_name[name].weight for name in rules]
        matrix = ScoreMatrix(results, inputs, rules)
        return ScoreBlock(self, matrix, cluster.nodes.columns.capacity, weights, before)

    def reads_of(self, state: ScoreBlock) -> Aspect:
        """Return which changes of a node (`Aspect`) can change scores of the policies that apply to the pods."""
        return _union(one.score_reads for one in self.members_of(state))

    def rows_of(self, state: ScoreBlock) -> list[BlockRow]:
        """Return by node the scores of each policy, before multiplication by the policy's weight."""
        return [BlockRow(one, scores) for one, scores in zip(self.members_of(state), state.scores, strict=True)]

    def members_of(self, state: ScoreBlock) -> Sequence[ActivePolicy]:
        """Return the policies that apply to the class of pods."""
        return [self._by_name[name] for name in state.matrix.names]

    def affected_rows(self, state: ScoreBlock, rows: RowNumbers) -> Rows:
        """Evaluate changed nodes and nodes whose shared values, such as aggregates, changed; return these nodes."""
        return state.update(rows)

    def score(self, state: ScoreBlock, rows: Rows) -> Scores:
        """Return for each node the weighted sum of the policies' scores."""
        return state.answers(rows)

    def stays_in_range(self, state: ScoreBlock) -> bool:  # noqa: ARG002 - scores are clipped
        """Return True, because rules clip scores to 0 to 100."""
        return True


class NormalizedPolicy(_Policies[NormalizedScores], ScorePlugin[NormalizedScores]):
    """The score plugin of one policy that has a normalizing rule."""

    normalizes = True

    def __init__(self, policy: ActivePolicy) -> None:
        super().__init__((policy,), policy.score_rows)
        self.policy = policy
        self.name, self.tier, self.score_reads = policy.name, policy.tier, policy.score_reads

    def prepare_score(self, pod: Pod, cluster: Cluster) -> NormalizedScores | Nothing:
        """Return the values, by node, of the policy's score rules that apply to the pod."""
        return self.prepare_after(None, pod, cluster)

    def prepare_after(self, before: NormalizedScores | None, pod: Pod, cluster: Cluster) -> NormalizedScores | Nothing:
        """Return the values of the score rules that apply; reuse those of an earlier profile if the rules are equal."""
        results = self._results(cluster)
        rules = self.policy.scores_for(pod, results.context)
        if not rules:
            return SKIP
        results.use(self, self._rules)
        if before is not None and before.rules == rules:
            return before
        return NormalizedScores(results, results.context.inputs(pod), rules)

    def affected_rows(self, state: NormalizedScores, rows: RowNumbers) -> Rows:
        """Return the changed nodes and the nodes whose shared values, such as aggregates, changed."""
        return state.affected_rows(rows)

    def score(self, state: NormalizedScores, rows: Rows) -> Scores:
        """Evaluate the rules on nodes and return placeholder scores; `normalize` returns the scores."""
        return state.answers(rows)

    def stays_in_range(self, state: NormalizedScores) -> bool:  # noqa: ARG002 - scores are clipped
        """Return True, because rules clip scores to 0 to 100."""
        return True

    def normalize(self, state: NormalizedScores, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - see `score`
        """Return the scores of nodes: each rule's values are normalized over the feasible nodes, then combined."""
        return state.final(feasible)


def score_plugins(policies: Iterable[ActivePolicy]) -> tuple[tuple[PolicyScores | NormalizedPolicy, int], ...]:
    """Return the score plugins for policies, each with its weight."""
    plain: dict[int, list[ActivePolicy]] = {}
    normalizing = []
    for one in policies:
        if one.normalizes:
            normalizing.append((NormalizedPolicy(one), one.weight))
        else:
            plain.setdefault(one.tier, []).append(one)
    return (*((PolicyScores(members), 1) for members in plain.values()), *normalizing)


def _union(aspects: Iterable[Aspect]) -> Aspect:
    return Aspect(reduce(or_, map(int, aspects), 0))  # unions of numbers are faster
