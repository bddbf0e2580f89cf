"""`JoinedPolicies`, the enforced policies as plugins of a profile, in groups that are evaluated together.

At first they are one group: rules of one shape are evaluated at once, whichever policies they stand in. An edit leaves
that group as it is, with all that is known of pod classes. The policies that say something else after it stand apart in
a group of their own, which is made anew with each edit; when they are many, all are put together again. A policy that
is given another weight, or another place among the others, says the same and stays the same plugin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policysched.framework import Cluster
from policysched.rules.plugin.policy_plugin import PolicyGroup, PolicyPlugin
from policysched.rules.policy_set.budget import MAX_UNITS

MOST_APART: Final = 4
"""One of so many policies of the first group may stand apart, or be gone: it is evaluated all the same."""
MOST_UNITS_GONE: Final = MAX_UNITS // 8
"""What those that are gone from it may take of each decision. Units: as the limit of all policies."""


@dataclass(frozen=True, slots=True)
class JoinedPolicies:
    """Policies as plugins, each as one of a group."""

    plugins: Mapping[str, PolicyPlugin]
    """By their names."""
    groups: Sequence[PolicyGroup]
    """The first one, and where policies stand apart a second one."""

    @classmethod
    def of(
        cls, filters: Sequence[PolicyPlugin], scores: Sequence[PolicyPlugin], before: JoinedPolicies | None = None
    ) -> JoinedPolicies:
        """Put policies into groups.

        Args:
            filters: The policies that filter, in their order.
            scores: The policies that score, in their order.
            before: What an earlier set of policies made; plugins that say the same are gone on with.
        """
        acting = {one.name: one for one in (*filters, *scores)}
        if before is None:
            return cls._with_group(filters, scores, {}, ())
        known, first = before.plugins, before.groups[0]
        stays = {name: known[name] for name, one in acting.items() if name in known and one.acts_as(known[name])}
        apart = {name for name in acting if name not in stays or stays[name].group is not first}
        gone = first.units.keys() - (acting.keys() - apart)
        units = sum(first.units[name] for name in gone)
        if MOST_APART * max(len(gone), len(apart)) > len(first.units) or units > MOST_UNITS_GONE:
            return cls._with_group(filters, scores, {}, ())
        for group in before.groups:
            group.seed()
        if apart <= stays.keys():
            return cls(stays, before.groups)
        filtering, scoring = ([one for one in those if one.name in apart] for those in (filters, scores))
        return cls._with_group(filtering, scoring, stays, (first,))

    @classmethod
    def _with_group(
        cls,
        filters: Sequence[PolicyPlugin],
        scores: Sequence[PolicyPlugin],
        others: Mapping[str, PolicyPlugin],
        groups: Sequence[PolicyGroup],
    ) -> JoinedPolicies:
        """Put some policies into a group of their own, beside others."""
        group = PolicyGroup(tuple(filters), tuple(scores))
        own = {one.name: one.joined(group) for one in (*filters, *scores)}
        return cls({**others, **own}, (*groups, group))

    def evaluate(self, cluster: Cluster) -> None:
        """Evaluate the rules that do not read the pod."""
        for group in self.groups:
            group.evaluate(cluster)
