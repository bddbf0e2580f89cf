"""PodDisruptionBudgets: finds the pods whose eviction would violate a budget.

Source: plugins/defaultpreemption/default_preemption.go (filterPodsWithPDBViolation), v1.36;
pkg/scheduler/framework/preemption/util.go (FilterVictimsWithPDBViolation), v1.37 and v1.38.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask
from policysched.model.objects import Pod, PodDisruptionBudget
from policysched.model.selection.indexed_selector import IndexedSelector

Places = NDArray[np.intp]
SPARE: Final = 1024
"""A namespace's cached label sets are dropped beyond twice its sets of equal pods (signatures) plus this number."""


@dataclass(frozen=True, slots=True)
class BudgetRules:
    """Rules for PodDisruptionBudgets that differ between Kubernetes minors."""

    stops_at_violation: bool = False
    """Whether less strict budgets do not count a pod whose eviction violates a stricter budget."""
    empty_selects_all: bool = False
    """Whether an empty selector matches all pods of the namespace, and whether budgets match pods without labels."""


class LabelSets:
    """The distinct label sets of a namespace's pods, numbered from 0, with an index from labels to label sets.

    Shapes: S sets.
    """

    def __init__(self) -> None:
        self.labels: list[Mapping[str, str]] = []
        self._numbers: dict[frozenset[tuple[str, str]], int] = {}
        self._with_value: dict[str, dict[str, list[int]]] = {}
        """The numbers of the label sets that have a label, by key and value."""
        self._with_key: dict[str, list[int]] = {}
        self._key_masks: dict[str, Mask] = {}
        self._later: tuple[int, LabelSets] | None = None

    def number(self, labels: Mapping[str, str]) -> int:
        """Return the number of a label set; a new label set gets the next number."""
        pairs = frozenset(labels.items())
        number = self._numbers.setdefault(pairs, len(self.labels))
        if number == len(self.labels):
            self.labels.append(labels)
            for key, value in pairs:
                self._with_value.setdefault(key, {}).setdefault(value, []).append(number)
                self._with_key.setdefault(key, []).append(number)
        return number

    def since(self, begin: int) -> LabelSets:
        """Return the label sets from the number `begin` on, renumbered from 0."""
        if not begin:
            return self
        if self._later is None or self._later[0] != begin or len(self._later[1].labels) != len(self.labels) - begin:
            later = LabelSets()
            for labels in self.labels[begin:]:
                later.number(labels)
            self._later = begin, later
        return self._later[1]

    def selected(self, selector: IndexedSelector) -> Mask:
        """Return a mask of the label sets that a selector matches.

        Shapes: (S,).
        Cost: a few operations over the sets, and a step for each value, for each label that some set has.
        """
        found: Mask = np.zeros(len(self.labels), np.bool_)
        if not all(key in self._with_key for key in selector.demanded):
            return found
        found[:] = True
        for key in selector.labels_among(self._with_key):
            said, having = selector.on(key), self._having(key)
            if said is None:
                continue
            kept: Mask = np.zeros(len(self.labels), np.bool_)
            if said.present:
                kept = having if said.allowed is None else self._with_values(key, said.allowed)
                kept = kept & ~self._with_values(key, said.banned) if said.banned else kept
            found &= kept | ~having if said.absent else kept
        return found

    def _having(self, key: str) -> Mask:
        """Return a mask of the label sets with a label key."""
        known = self._key_masks.get(key)
        if known is None or known.size < len(self.labels):
            known = self._key_masks[key] = self._mask([self._with_key.get(key)])
        return known

    def _with_values(self, key: str, values: Set[str]) -> Mask:
        """Return a mask of the label sets in which a label has one of the values."""
        known = self._with_value.get(key, {})
        return self._mask(known[value] for value in known.keys() & values)

    def _mask(self, parts: Iterable[Sequence[int] | None]) -> Mask:
        mask: Mask = np.zeros(len(self.labels), np.bool_)
        for numbers in parts:
            if numbers:
                mask[numbers] = True
        return mask


class SelectedLabels:
    """The label sets of a namespace that a budget's selector matches; each label set is evaluated once."""

    __slots__ = ("_known", "_sets", "selector")

    def __init__(self, selector: IndexedSelector) -> None:
        self.selector = selector
        self._sets: LabelSets | None = None
        self._known: Mask = np.zeros(0, np.bool_)

    def of(self, sets: LabelSets) -> Mask:
        """Return a mask of the label sets that the selector matches.

        Shapes: (sets,).
        """
        if self._sets is not sets:
            self._sets, self._known = sets, sets.selected(self.selector)
        elif (size := self._known.size) < len(sets.labels):
            self._known = np.concatenate((self._known, sets.since(size).selected(self.selector)))
        return self._known


@dataclass(frozen=True, slots=True, eq=False)
class SelectingBudget:
    """A PodDisruptionBudget with a valid selector."""

    name: str
    selection: SelectedLabels
    allowed: int
    """Number of evictions that the budget still allows."""
    disrupted: frozenset[str]
    """The names of the pods whose eviction the budget already counted (`status.disruptedPods`)."""


class EqualBudgets(NamedTuple):
    """Budgets of a namespace that match the same label sets."""

    budgets: list[SelectingBudget]
    selected: Mask
    """Mask of the label sets that the budgets match. Shapes: (sets,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The PodDisruptionBudgets of a namespace, grouped by the label sets that they match."""

    sets: LabelSets
    budgets: Sequence[SelectingBudget]
    spent: Mask
    """Mask of the label sets that a budget without allowed evictions matches. Shapes: (sets,)."""
    rest: Sequence[EqualBudgets]
    """The budgets with allowed evictions, grouped by the label sets that they match."""

    def is_of(self, budgets: Sequence[SelectingBudget]) -> bool:
        """Return whether this object was computed from the given budgets."""
        return len(budgets) == len(self.budgets) and all(map(operator.is_, budgets, self.budgets))

    def below(self, most: int) -> Iterator[EqualBudgets]:
        """Yield the groups of budgets that allow at least one, but fewer than `most` evictions."""
        for budgets, selected in self.rest:
            strict = [one for one in budgets if one.allowed < most]
            if strict:
                yield EqualBudgets(strict, selected)


class Budgets:
    """The PodDisruptionBudgets of the cluster at the time of a preemption.

    Args:
        cluster: The cluster.
        before: The budgets at an earlier time; unchanged budgets reuse their compiled selectors and matches.
        rules: How budgets protect pods, the same as those of `before`.
    """

    def __init__(self, cluster: Cluster, before: Budgets | None = None, rules: BudgetRules | None = None) -> None:
        self._rules = rules or BudgetRules()
        self._by_namespace: dict[str, list[SelectingBudget]] = {}
        self._compiled: dict[Hashable, Compiled] = {}
        self._limits: dict[str, Limits] = {}
        """The grouped budgets by namespace."""
        self._sets: dict[str, LabelSets] = {}
        """The label sets by namespace, for namespaces with budgets."""
        for key, one in cluster.objects.of(PodDisruptionBudget).items():
            known = before._compiled.get(key) if before is not None else None
            if known is None or known[0] is not one:
                known = one, _renewed(one, known, cluster, self._rules)
            self._compiled[key] = known
            if known[1] is not None:
                self._by_namespace.setdefault(one.metadata.namespace, []).append(known[1])
        if before is not None:
            self._sets = {name: known for name, known in before._sets.items() if name in self._by_namespace}
            self._limits = {
                name: known for name, known in before._limits.items() if known.is_of(self._by_namespace.get(name, ()))
            }

    def of(self, pod: Pod) -> list[SelectingBudget]:
        """Return the budgets that match a pod and have not already counted its eviction."""
        metadata = pod.metadata
        among = self._by_namespace.get(metadata.namespace, ()) if self._may_select(metadata.labels) else ()
        selecting = (one for one in among if one.selection.selector.matches(metadata.labels))
        return [one for one in selecting if metadata.name not in one.disrupted]

    def violating(self, cluster: Cluster, slots: Places, rows: Places) -> Mask:
        """Return which evictions violate a budget, if all pods listed earlier on the same node are evicted too.

        Whether a budget counts a pod whose eviction violates another budget depends on the rules.

        Args:
            cluster: The cluster.
            slots: The pods, by their slots in the pod table, ordered by node and then by importance.
            rows: The node that the eviction of each pod is to free.

        Shapes: (V,).
        Cost: O(pods + budgets), and for each distinct selection its pods.
        """
        found: Mask = np.zeros(slots.size, np.bool_)
        if not self._by_namespace or not slots.size:
            return found
        signatures = cluster.pods.signatures[slots]
        order = np.argsort(signatures, kind="stable")
        present, begins = np.unique(signatures[order], return_index=True)
        of_signature = np.split(order, begins[1:])
        most = int(np.unique(rows, return_counts=True)[1].max())
        for namespace, (places, numbers) in self._numbered(cluster, present.tolist()).items():
            limits = self._limits_of(namespace)
            for place in places[limits.spent[numbers]].tolist():
                found[of_signature[place]] = True
            rest = _joined((one.budgets, one.selected[numbers]) for one in limits.below(most))
            for budgets, selected in sorted(rest, key=_strictness):
                if not selected.any():
                    continue
                pods = np.sort(np.concatenate([of_signature[place] for place in places[selected].tolist()]))
                for pods_of_budget, allowed in _spent(budgets, pods, cluster, slots, rows):
                    counted = (
                        pods_of_budget[~found[pods_of_budget]] if self._rules.stops_at_violation else pods_of_budget
                    )
                    found[counted[_counted_on_row(rows[counted]) > allowed]] = True
        return found

    def _may_select(self, labels: Mapping[str, str]) -> bool:
        """Return whether a budget can select pods with these labels."""
        return bool(labels) or self._rules.empty_selects_all

    def _limits_of(self, namespace: str) -> Limits:
        """Return the grouped budgets of a namespace, with every label set of the namespace evaluated."""
        sets, budgets = self._sets[namespace], self._by_namespace[namespace]
        known = self._limits.get(namespace)
        size = len(sets.labels)
        if known is not None and known.sets is sets and known.spent.size == size:
            return known
        spent: Mask = np.zeros(size, np.bool_)
        rest: dict[bytes, EqualBudgets] = {}
        for one in budgets:
            selected = one.selection.of(sets)
            if one.disrupted or one.allowed > 0:
                rest.setdefault(selected.tobytes(), EqualBudgets([], selected)).budgets.append(one)
            else:
                spent |= selected
        found = self._limits[namespace] = Limits(sets, budgets, spent, list(rest.values()))
        return found

    def _numbered(self, cluster: Cluster, signatures: Sequence[int]) -> dict[str, tuple[Places, Places]]:
        """Return by namespace which sets of equal pods (signatures) budgets may match, with label set numbers."""
        there: dict[str, list[tuple[int, Mapping[str, str]]]] = {}
        for place, signature in enumerate(signatures):
            placed = cluster.signatures.present[signature]
            if placed is None:
                continue
            metadata = placed.pod.metadata
            if metadata.namespace in self._by_namespace and self._may_select(metadata.labels):
                there.setdefault(metadata.namespace, []).append((place, metadata.labels))
        found: dict[str, tuple[Places, Places]] = {}
        for namespace, labelled in there.items():
            sets = self._sets.setdefault(namespace, LabelSets())
            if len(sets.labels) > 2 * len(cluster.signatures.of_namespace(namespace)) + SPARE:
                sets = self._sets[namespace] = LabelSets()
                self._limits.pop(namespace, None)
            numbers = [sets.number(labels) for _, labels in labelled]
            found[namespace] = np.array([place for place, _ in labelled], np.intp), np.array(numbers, np.intp)
        return found


Compiled = tuple[PodDisruptionBudget, SelectingBudget | None]


def _joined(selecting: Iterable[tuple[Sequence[SelectingBudget], Mask]]) -> list[EqualBudgets]:
    """Group budgets that match the same label sets."""
    found: dict[bytes, EqualBudgets] = {}
    for budgets, selected in selecting:
        found.setdefault(selected.tobytes(), EqualBudgets([], selected)).budgets.extend(budgets)
    return list(found.values())


def _strictness(group: EqualBudgets) -> tuple[int, str]:
    """Return a sort key of a group: number of allowed evictions and name of its strictest budget."""
    return min((one.allowed, one.name) for one in group.budgets)


def _spent(
    budgets: Sequence[SelectingBudget], pods: Places, cluster: Cluster, slots: Places, rows: Places
) -> Iterator[tuple[Places, int]]:
    """Yield the pods that a group of budgets matches, each set with the number of evictions allowed on each node.

    The strictest budget decides on the nodes without a pod whose eviction it has already counted. On the other nodes,
    budgets that allow more are evaluated, too.

    Cost: O(pods), and for each budget its evictions and a few operations over the pods that are left.
    """
    is_left = np.zeros(slots.size, np.bool_)
    is_left[pods] = True
    places_of: dict[str, list[int]] | None = None
    for budget in sorted(budgets, key=lambda one: one.allowed):
        if budget.disrupted and places_of is None:
            places_of = _places_by_name(pods, cluster, slots)
        evicted = _evicted(budget, places_of or {})
        evicted = evicted[is_left[evicted]]
        if not evicted.size:
            yield pods, budget.allowed
            return
        is_there = np.isin(rows[pods], rows[evicted])
        yield pods[~is_there], budget.allowed
        is_left[pods[~is_there]] = False
        pods = pods[is_there]
        yield pods[~np.isin(pods, evicted)], budget.allowed


def _places_by_name(pods: Places, cluster: Cluster, slots: Places) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place in pods.tolist():
        if (one := cluster.pods.by_slot[slots[place]]) is not None:
            found.setdefault(one.pod.metadata.name, []).append(place)
    return found


def _evicted(budget: SelectingBudget, places_of: Mapping[str, Sequence[int]]) -> Places:
    """Return the indices of the pods whose eviction a budget already counted."""
    fewer = budget.disrupted if len(budget.disrupted) < len(places_of) else places_of
    names = (name for name in fewer if name in budget.disrupted and name in places_of)
    return np.array([place for name in names for place in places_of[name]], np.intp)


def _counted_on_row(rows: Places) -> NDArray[np.intp]:
    """Number the elements of each run of equal row numbers (pods of one node), from 1."""
    numbers = np.arange(rows.size)
    is_first = np.append(True, rows[1:] != rows[:-1])[: rows.size]
    return numbers - np.maximum.accumulate(np.where(is_first, numbers, 0)) + 1


def _renewed(
    given: PodDisruptionBudget, before: Compiled | None, cluster: Cluster, rules: BudgetRules
) -> SelectingBudget | None:
    """Compile a new or changed budget; if its selector did not change, reuse the cached matches."""
    if before is None or before[0].spec.selector != given.spec.selector:
        selection = _selection(given, cluster, rules)
    else:
        selection = None if before[1] is None else before[1].selection
    if selection is None:
        return None
    status = given.status
    return SelectingBudget(given.metadata.name, selection, status.disruptions_allowed, frozenset(status.disrupted_pods))


def _selection(given: PodDisruptionBudget, cluster: Cluster, rules: BudgetRules) -> SelectedLabels | None:
    """Return a budget's compiled selector; None if the selector is missing, invalid or matches no pod."""
    stated = given.spec.selector
    if stated is None or not (stated.match_labels or stated.match_expressions or rules.empty_selects_all):
        return None
    selector = cluster.budget_selectors.of(f"{given.metadata.namespace}/{given.metadata.name}", stated).selector
    return None if selector is None else SelectedLabels(selector)
