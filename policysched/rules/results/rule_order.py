"""Where the rules of policies stand in a matrix: the same for all pod classes for which the same rules speak.

Shapes: P policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask
from policysched.language.ir.graph import Typed
from policysched.rules.compile.graphs import reads_image_sizes, shared_parts
from policysched.rules.inputs import PodInputs
from policysched.rules.results.pod_independent import PodIndependentResults
from policysched.rules.results.rule_rows import MixedStacks, RowT, RuleRow, ScoreRow
from policysched.rules.shared_values.context import EvaluationContext
from policysched.rules.shared_values.derived import Dependency, dependencies_of


class RuleOrder(Generic[RowT]):
    """The rules that speak for a pod, in the order of a matrix.

    Args:
        independent: The results that are the same for all pod classes; they keep this one.
        speaking: The rules of each policy that speak, at least one, in their order.
    """

    def __init__(self, independent: PodIndependentResults, speaking: Sequence[tuple[str, Sequence[RowT]]]) -> None:
        index, direct = independent.index, independent.direct
        longest_first = sorted(speaking, key=lambda one: len(one[1]), reverse=True)
        self.places = {name: place for place, (name, _) in enumerate(longest_first)}
        """The place of each policy."""
        self.speaking: list[Sequence[RowT]] = [rows for _, rows in longest_first]
        """The rules of each policy."""
        rules = [rule for own in self.speaking for rule in own]
        self.policy_of: list[int] = [policy for policy, own in enumerate(self.speaking) for _ in own]
        """The policy of each rule."""
        self.is_kept: Mask = np.array([rule in index for rule in rules], np.bool_)
        """Whether a rule is one of the pod-independent ones."""
        self.own: tuple[RowT, ...] = tuple(rule for rule in rules if rule not in index)
        self.kept: NDArray[np.int64] = np.array([index[rule] for rule in rules if rule in index], np.int64)
        self.own_roots: tuple[Typed, ...] = tuple(rule.root for rule in self.own)
        self.batch = independent.batch_of(self.own_roots)
        still: Mask = self.is_kept & np.array([rule not in direct for rule in rules], np.bool_)
        stacked, self.steps = _stacked([len(own) for own in self.speaking])
        self.still_at: NDArray[np.int64] = stacked[still]
        """Where results stand that are read for few rows, too."""
        self.still: NDArray[np.int64] = self.kept[still[self.is_kept]]
        """Which ones these are."""
        self._anew: tuple[RowT, ...] = tuple(
            rule for rule, is_still in zip(rules, still.tolist(), strict=True) if not is_still
        )
        self._anew_at: NDArray[np.int64] = stacked[~still]
        self._stacks_of = independent.own_stacks
        self.direct_roots: tuple[Typed, ...] = tuple(rule.root for rule in self._anew if rule in direct)
        """The graphs of the rules that are evaluated for few rows and read nothing of the pod."""
        self._of_kept: list[list[Dependency]] = [
            independent.dependencies(rule for rule in own if rule in index and rule not in direct)
            for own in self.speaking
        ]
        self._roots_of = [[rule.root for rule in own if rule not in index] for own in self.speaking]
        self._has_own = any(
            any(True for timed in (False, True) for _ in shared_parts(roots, timed=timed)) or reads_image_sizes(roots)
            for roots in self._roots_of
        )
        self._all_of_kept = _each_once(self._of_kept)

    def dependencies(
        self, context: EvaluationContext, pod: PodInputs
    ) -> tuple[Sequence[Sequence[Dependency]], Sequence[Dependency]]:
        """Return what each policy depends on beyond its rows, and all of that."""
        if not self._has_own:
            return self._of_kept, self._all_of_kept
        found = [
            kept + dependencies_of(context, roots, pod)
            for kept, roots in zip(self._of_kept, self._roots_of, strict=True)
        ]
        return found, _each_once(found)

    @cached_property
    def stacks(self) -> MixedStacks:
        """What is evaluated for few rows, the rules of one shape together, with where their results stand."""
        stacks, batch = self._stacks_of(self._anew)
        return [(stack, self._anew_at[places[:, 0]]) for stack, places in stacks], batch

    @cached_property
    def weights(self) -> NDArray[Any]:
        """What the rules of each policy weigh together, 1 where that is nothing. Shapes: (P, 1)."""
        weights = [sum(map(_weight, rules)) for rules in self.speaking]
        return np.maximum(np.array(weights, np.float64), 1.0)[:, None]


def _weight(rule: RuleRow) -> float:
    return rule.rule.weight if isinstance(rule, ScoreRow) else 0.0


def _each_once(found: Sequence[Sequence[Dependency]]) -> list[Dependency]:
    return list(dict.fromkeys(one for own in found for one in own))


def _stacked(sizes: Sequence[int]) -> tuple[NDArray[np.int64], list[slice]]:
    """Put the first rules of all policies side by side, then the second ones of all that have one, and so on.

    Args:
        sizes: How many rules each policy has, the largest first.

    Returns:
        Where each rule stands then, policy by policy; and where each of these steps does.
    """
    counts = [sum(size > place for size in sizes) for place in range(max(sizes, default=0))]
    begins = [sum(counts[:place]) for place in range(len(counts))]
    found = [begins[place] + policy for policy, size in enumerate(sizes) for place in range(size)]
    steps = [slice(begin, begin + count) for begin, count in zip(begins, counts, strict=True)]
    return np.array(found, np.int64), steps
