"""The selectors of disruption budgets, compiled when budgets come: the preemption that reads many does not wait for it.

Whoever may make budgets may give them selectors as long as an object may be. Knows what budgets select by, no pods.
"""

from __future__ import annotations

from policysched.model.objects import LabelSelector, PodDisruptionBudget
from policysched.model.selection.indexed_selector import IndexedSelector
from policysched.model.selection.selectors import SelectorError


class BudgetSelectors:
    """What each known budget selects pods by."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[LabelSelector | None, IndexedSelector | None]] = {}
        """By `namespace/name`."""

    def put(self, budget: PodDisruptionBudget) -> None:
        """Take a budget as it is now; one that selects what it did keeps what is compiled.

        Cost: O(requirements and values), about a microsecond each, where its selector changed.
        """
        key, stated = _key(budget), budget.spec.selector
        known = self._known.get(key)
        same = known is not None and known[0] == stated
        self._known[key] = stated, known[1] if known is not None and same else compiled_budget_selector(stated)

    def drop(self, budget: PodDisruptionBudget) -> None:
        """Forget a budget that is gone."""
        self._known.pop(_key(budget), None)

    def of(self, budget: PodDisruptionBudget) -> IndexedSelector | None:
        """Return what a budget selects by, None where it selects nothing."""
        known = self._known.get(_key(budget))
        if known is None or known[0] is not budget.spec.selector:
            return compiled_budget_selector(budget.spec.selector)
        return known[1]


def compiled_budget_selector(stated: LabelSelector | None) -> IndexedSelector | None:
    """Compile a selector; a budget without one, with an empty one or with one that is not valid selects nothing."""
    if stated is None or not (stated.match_labels or stated.match_expressions):
        return None
    try:
        return IndexedSelector(stated)
    except SelectorError:
        return None


def _key(budget: PodDisruptionBudget) -> str:
    return f"{budget.metadata.namespace}/{budget.metadata.name}"
