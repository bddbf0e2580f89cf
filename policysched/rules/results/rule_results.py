"""Results of single rules by row: codes of filters, values of scores; pod-independent ones are kept for all classes.

A filter answers each row with a detail: 0 where its condition holds, 1 where it is false, 2 where it is unknown without
a missing input (a division by zero), from 3 on where an input was missing (numbered as they are found): the condition
is unknown then, or false because a `?? false` says so. A code is the place of the first rule that does not hold, times
DETAILS, plus its detail; so the smallest code but 0 is that of the first rule.

What rules say that read nothing of the pod is one row of a matrix for each, shared by all pod classes. It is written
again only for nodes that changed in what the rule reads, and where an aggregate or a value for all nodes moved; so what
such a rule costs does not grow with the number of pod classes.

Shapes: R rows asked for, F filter rules, S score rules, C the capacity of the columns.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Aspect, Codes, Mask, Rows, Status, unresolvable, unschedulable
from policysched.language.evaluation.columns import Batch, evaluate_columns, missing_inputs
from policysched.language.evaluation.frames import Frame
from policysched.language.evaluation.stacks import alike, stack
from policysched.language.ir.graph import ANY_KEY, Input, Typed, per_graph
from policysched.language.ir.types import Shape
from policysched.pausing import Pausing, finished
from policysched.rules.compile.graphs import is_pod_independent, reads_image_sizes, reads_namespaces, shared_parts
from policysched.rules.compile.policy import CompiledFilter, CompiledScore
from policysched.rules.inputs import aspects_read
from policysched.rules.results.remembered import RememberedAnswers
from policysched.rules.shared_values.aggregates import hold
from policysched.rules.shared_values.context import EvaluationContext, RuleFrame, number
from policysched.rules.shared_values.derived import AffectedRows, Dependency, after, dependencies_of
from policysched.rules.shared_values.pod_aggregates import PODS, Reads
from policysched.state.tables.interner import Interner
from policysched.state.tables.journal import ABOUT_NODES

DETAILS = 1 << 24
"""More than the inputs that a policy can find missing: keys computed from pods may be many."""
FALSE = 1
UNKNOWN = 2
FIRST_MISSING = 3
LONGEST_TEXT = 80
MOST_MISSING = 1024
"""How many inputs a policy tells apart that were missing; those with keys made of pods may be any number."""
FEW = 256
"""On how many rows rules of one shape are evaluated at once: for more, the copies that this takes cost more than it
saves."""
FINE = 2**31 - 1
"""Stands for 0 where the smallest of several rules' codes is looked for."""
MOST_REMEMBERED = 8
"""For how many sets of rules that speak for pods answers are remembered by what the rules read."""
LIVELY = Aspect.USAGE | Aspect.PODS | Aspect.AGE | Aspect.METRICS
"""What changes all the time."""
Lack = tuple[Input, bool]
"""A missing input, and whether the condition is false for it and not unknown."""
Values = NDArray[np.float64]


@per_graph
def is_direct(root: Typed) -> bool:
    """Return whether placements change what a graph says that reads nothing of the pod, and on their rows alone."""
    if not aspects_read(root.inputs) & (Aspect.USAGE | Aspect.PODS):
        return False
    elsewhere = any(True for _ in shared_parts([root], timed=True))
    return not (elsewhere or reads_image_sizes([root]) or reads_namespaces(root))


@dataclass(frozen=True, slots=True, eq=False)
class FilterRow:
    """A filter rule with its place in its policy."""

    place: int
    rule: CompiledFilter
    missing: Interner[Lack]
    """What some condition of the policy lacked."""

    @property
    def root(self) -> Typed:
        """The graph of its condition."""
        return self.rule.require.root

    def result(self, frame: Frame) -> Codes:
        """Return the code of each row.

        Shapes: (R,) int32, FINE where the rule holds.
        """
        true, unknown = evaluate_columns(self.root, frame)
        first = self.place * DETAILS
        codes = np.where(_column(true, frame.rows), np.int32(FINE), np.int32(first + FALSE))
        if unknown is False:
            return codes
        lacking = _column(unknown, frame.rows)
        if not lacking.any():
            return codes
        stated = self.rule.stated
        unsaid = lacking if stated is None else _column(evaluate_columns(stated.root, frame)[1], frame.rows)
        codes[lacking & unsaid] = first + UNKNOWN
        for item, rows in missing_inputs(self.rule.require, frame, lacking):
            codes[rows & unsaid] = first + FIRST_MISSING + self._number((item, False))
            if stated is not None:
                codes[rows & ~unsaid] = first + FIRST_MISSING + self._number((item, True))
        return codes

    def is_unknown(self, code: int) -> bool:
        """Return whether the condition as it is written is unknown, and not false, where the rule gave a code."""
        detail = (code - 1) % DETAILS + 1
        return detail == UNKNOWN or (detail >= FIRST_MISSING and not self.missing.value(detail - FIRST_MISSING)[1])

    def _number(self, lack: Lack) -> int:
        """Number what was missing; of too many with a key, only what they are keys of is told."""
        item, defaulted = lack
        if item.key is not None and len(self.missing) >= MOST_MISSING and self.missing.find(lack) < 0:
            lack = (replace(item, key=ANY_KEY), defaulted)
        return self.missing.code(lack)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRow:
    """A score rule."""

    rule: CompiledScore

    @property
    def root(self) -> Typed:
        """The graph of its value."""
        return self.rule.value.root

    def values(self, frame: RuleFrame) -> Values:
        """Evaluate the rule before any normalising.

        Shapes: (R,), NaN where it has no value.
        """
        value = number(self.rule.value, frame)
        return value if value.shape else np.full(frame.rows, value, np.float64)

    def result(self, frame: RuleFrame) -> Values:
        """Return what the rule adds to the scores of rows. Shapes: (R,)."""
        return self.part(self.values(frame))

    def part(self, values: Values) -> Values:
        """Fill in what is missing, clip to 0..100, and weigh; without any node even what is never missing may be.

        Shapes: (R,) -> (R,).
        """
        rule = self.rule
        filled: Values = np.where(np.isnan(values), rule.missing, values) if rule.value.type.optional else values
        return rule.weight * np.minimum(np.fmax(filled, 0.0), 100.0)


RuleRow = FilterRow | ScoreRow
RowT = TypeVar("RowT", FilterRow, ScoreRow)


class FilterStack:
    """Filter rules whose conditions have one shape: they are evaluated at once.

    Shapes: G the rules.
    """

    __slots__ = ("_failed", "_rules", "root")

    def __init__(self, rules: Sequence[FilterRow]) -> None:
        self._rules = rules
        self.root = stack([rule.root for rule in rules])
        """The graph of all conditions."""
        self._failed = np.array([[rule.place * DETAILS + FALSE] for rule in rules], np.int32)

    def result(self, frame: Frame) -> Codes:
        """Return the code of each rule and row.

        Shapes: (G, R), or (G, 1) where it is the same for every row.
        """
        true, unknown = evaluate_columns(self.root, frame)
        codes = np.where(true, np.int32(FINE), self._failed)
        if unknown is False or not np.count_nonzero(unknown):
            return codes
        codes = np.array(np.broadcast_to(codes, (len(self._rules), frame.rows)))
        for place in np.flatnonzero(np.broadcast_to(unknown, codes.shape).any(axis=1)).tolist():
            codes[place] = self._rules[place].result(frame)
        return codes


class ScoreStack:
    """Score rules whose values have one shape: they are evaluated at once.

    Shapes: G the rules.
    """

    __slots__ = ("_missing", "_optional", "_weights", "root")

    def __init__(self, rules: Sequence[ScoreRow]) -> None:
        self.root = stack([rule.root for rule in rules])
        """The graph of all values."""
        self._optional = any(rule.rule.value.type.optional for rule in rules)
        self._missing = np.array([[rule.rule.missing] for rule in rules], np.float64)
        self._weights = np.array([[rule.rule.weight] for rule in rules], np.float64)

    def values(self, frame: Frame) -> Values:
        """Evaluate the rules before any normalising.

        Shapes: (G, R), or less where values are the same.
        """
        return np.asarray(evaluate_columns(self.root, frame), np.float64)

    def result(self, frame: Frame) -> Values:
        """Return what each rule adds to the scores of rows. Shapes: (G, R) or (G, 1)."""
        return self.part(self.values(frame))

    def part(self, values: Values) -> Values:
        """Do what `part` of each rule does."""
        filled = np.where(np.isnan(values), self._missing, values) if self._optional else values
        return self._weights * np.minimum(np.fmax(filled, 0.0), 100.0)


Places = NDArray[np.intp]
Stacks = tuple[list[tuple[FilterStack, Places]], list[tuple[ScoreStack, Places]], Batch]
MixedStacks = tuple[list[tuple[FilterStack | ScoreStack, Places]], Batch]


def stacks_of(filters: Sequence[tuple[int, FilterRow]], scores: Sequence[tuple[int, ScoreRow]]) -> Stacks:
    """Put rules of one shape together.

    Args:
        filters: Filter rules, each with its place.
        scores: Score rules, each with its place.

    Returns:
        The stacks with the places of their rules, and what evaluates all of them together. Shapes: (G, 1).
    """
    filtering = [(FilterStack([rule for _, rule in found]), _places(found)) for found in _alike(filters)]
    scoring = [(ScoreStack([rule for _, rule in found]), _places(found)) for found in _alike(scores)]
    roots = [*(one.root for one, _ in filtering), *(one.root for one, _ in scoring)]
    return filtering, scoring, Batch(roots)


def mixed_stacks(rules: tuple[RuleRow, ...]) -> MixedStacks:
    """Put rules of one shape together, with their places among all, and what evaluates all of them."""
    filters = [(place, rule) for place, rule in enumerate(rules) if isinstance(rule, FilterRow)]
    scores = [(place, rule) for place, rule in enumerate(rules) if isinstance(rule, ScoreRow)]
    filtering, scoring, batch = stacks_of(filters, scores)
    return [*filtering, *scoring], batch


def _alike(rules: Sequence[tuple[int, RowT]]) -> list[list[tuple[int, RowT]]]:
    return [[rules[place] for place in places] for places in alike([rule.root for _, rule in rules])]


def _places(rules: Sequence[tuple[int, RuleRow]]) -> Places:
    return np.array([place for place, _ in rules])[:, None]


def filter_rows(rules: Sequence[CompiledFilter], before: Sequence[FilterRow] = ()) -> tuple[FilterRow, ...]:
    """Give the filter rules of a policy their places.

    Args:
        rules: The rules.
        before: Those of an earlier generation. One that is the same at the same place stays, with what is known of it;
            but not where the inputs that were missing have become so many that they are numbered anew.
    """
    known: Interner[Lack] = before[0].missing if before else Interner()
    if 2 * len(known) > MOST_MISSING:
        before, known = (), Interner()
    same = {row.place: row for row in before if row.place < len(rules) and row.rule == rules[row.place]}
    return tuple(same.get(place) or FilterRow(place, rule, known) for place, rule in enumerate(rules))


def score_rows(rules: Sequence[CompiledScore], before: Sequence[ScoreRow] = ()) -> tuple[ScoreRow, ...]:
    """Return the score rules of a policy; those that are the same in an earlier generation are the same objects."""
    same = {row.rule.name: row for row in before}
    return tuple(row if (row := same.get(rule.name)) and row.rule == rule else ScoreRow(rule) for rule in rules)


def plugin_codes(codes: Codes) -> Codes:
    """Put 0, a plugin's code where the pod may go, in the place of FINE.

    Shapes: any, the same.
    """
    codes *= codes != FINE
    return codes


def reason(policy: str, rows: Sequence[FilterRow], code: int) -> Status:
    """Translate a code into the policy's status."""
    position, detail = divmod(code - 1, DETAILS)
    row = rows[position]
    text = f"policy {policy}/{row.rule.name}: {_explanation(row, detail + 1)}"
    return unschedulable(text) if row.rule.resolvable else unresolvable(text)


def _explanation(row: FilterRow, detail: int) -> str:
    rule = row.rule
    if detail == FALSE:
        return rule.message or shortened(rule.require.text)
    if detail == UNKNOWN:
        return f"{shortened(rule.require.text)} is unknown"
    item, defaulted = row.missing.value(detail - FIRST_MISSING)
    said = f"{item.text} is missing"
    return f"{rule.message or shortened(rule.require.text)} ({said})" if defaulted else said


def _column(value: Any, rows: int) -> Mask:
    return value if isinstance(value, np.ndarray) else np.full(rows, value, np.bool_)


def shortened(text: str) -> str:
    """Cut a text that is too long for a reason."""
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


class RefreshGroup:
    """Rules that are written at the same time. It is a dependency: what it reaches, its readers have to read again."""

    __slots__ = ("_affected", "_context", "_generation", "_held", "_position", "_reads", "_reads_namespaces",
                 "_results", "_roots", "_skips_placements", "_stacks", "_stamps", "batch", "is_direct", "rules",
                 "scoring", "stamp")  # fmt: skip

    def __init__(self, results: PodIndependentResults, rules: Sequence[tuple[int, RuleRow]]) -> None:
        self._roots = [rule.root for _, rule in rules]
        self.rules = rules
        self.is_direct: bool = all(is_direct(root) for root in self._roots)
        """Whether the rules are evaluated anew by who asks about few rows."""
        self.scoring = [index for index, rule in rules if isinstance(rule, ScoreRow)]
        """The places of those that score."""
        self.batch = Batch(self._roots)
        self._stacks: Stacks | None = None
        # The results hold it: who holds itself is only freed when garbage is looked for.
        self._results = weakref.ref(results)
        self._context = results.context
        self._reads_namespaces = any(reads_namespaces(root) for root in self._roots)
        self.stamp = 0
        self._begin()

    def refresh(self) -> None:
        """Bring the results up to date."""
        if (results := self._results()) is not None:
            results.refresh(whole=self.is_direct)

    @property
    def stacks(self) -> Stacks:
        """What evaluates the rules on few rows: filters and scores with their places, and all of them together."""
        if self._stacks is None:
            filters = [(index, rule) for index, rule in self.rules if isinstance(rule, FilterRow)]
            scores = [(index, rule) for index, rule in self.rules if isinstance(rule, ScoreRow)]
            self._stacks = stacks_of(filters, scores)
        return self._stacks

    def forget(self) -> None:
        """Have all rows written again."""
        self._stamps: NDArray[np.int64] = np.zeros(0, np.int64)

    def moved(self, since: int) -> Rows:
        """Return the rows that dependencies affected after a stamp; those too of which that can no longer be told."""
        return after(self._stamps[: self._context.cluster.nodes.size], since)

    def _current_generation(self) -> int:
        return self._context.cluster.namespaces_generation if self._reads_namespaces else 0

    def _begin(self) -> None:
        """Look for what the rules read; it has to be looked for again when namespaces have other labels."""
        context, roots = self._context, self._roots
        self._generation = self._current_generation()
        self._reads = Reads(roots, context.no_pod, context)
        self._held = hold(context, roots, context.no_pod)
        dependencies = dependencies_of(context, roots, context.no_pod)
        self._affected = AffectedRows(dependencies)
        self._skips_placements = not (self._reads.aspects & ~ABOUT_NODES or self._reads.counts or dependencies)
        self._position = -1
        self.forget()

    def _count(self) -> None:
        if (results := self._results()) is not None:
            results.moves += 1

    def due(self) -> Rows:
        """Return the rows that have to be written again."""
        if self._generation != self._current_generation():
            self._begin()
        cluster = self._context.cluster
        journal = cluster.journal
        is_known = self._stamps.size == cluster.nodes.columns.capacity
        if is_known and self._skips_placements and journal.about_nodes <= self._position:
            self._position = journal.position
            return NO_ROWS
        changed: Rows | None = None
        counted = self._reads.counted()
        if is_known:
            changed, _ = self._context.changed(self._position, self._reads.aspects | (PODS if counted else 0))
        else:
            self._stamps = np.zeros(cluster.nodes.columns.capacity, np.int64)
        self._position = journal.position
        affected = self._affected.extend(NO_ROWS if changed is None else changed)
        if changed is None:
            affected = slice(0, cluster.nodes.size)
        if affected is not changed:
            self._count()
            self.stamp += 1
            self._stamps[affected] = self.stamp
        return affected


class PodIndependentResults:
    """What those of some rules say that read nothing of the pod, before any normalising."""

    def __init__(
        self, context: EvaluationContext, filters: Iterable[FilterRow] = (), scores: Iterable[ScoreRow] = ()
    ) -> None:
        self.context = context
        self._version: object = None
        """When the results were last brought up to date, but perhaps those of direct rules."""
        self._whole_version: object = None
        self.moves = 0
        """How often a group of rules had rows that something else than a change of them affected."""
        own_filters = [rule for rule in filters if is_pod_independent(rule.root)]
        own_scores = [rule for rule in scores if is_pod_independent(rule.root)]
        placed: list[tuple[int, RuleRow]] = [*enumerate(own_filters), *enumerate(own_scores)]
        self.index = {rule: index for index, rule in placed}
        """The place of each rule among those of its kind."""
        self.direct: frozenset[RuleRow] = frozenset(rule for rule in self.index if is_direct(rule.root))
        """Rules that whoever asks about few rows evaluates: placements change what they say, on their rows alone."""
        self.codes: NDArray[np.int32] = np.zeros((len(own_filters), 0), np.int32)
        """Codes of filter rules, FINE where they hold. Shapes: (F, C)."""
        self.values: NDArray[np.float64] = np.zeros((len(own_scores), 0))
        """Values of score rules, NaN where they have none. Shapes: (S, C)."""
        self.parts: NDArray[np.float64] = np.zeros((len(own_scores), 0))
        """Values of score rules, clipped and weighted. Shapes: (S, C)."""
        self.stamps = [0] * len(own_scores)
        """How often each score rule was written."""
        self._rules = placed
        self.seed()
        # Those were written before this one was made: nobody ever waits for who waits for him.
        self._earlier = {rule: weakref.ref(context.results[rule]) for _, rule in placed if rule in context.results}
        self._groups: list[RefreshGroup] | None = None
        """None until they are first needed."""
        self.batch_of = lru_cache(maxsize=256)(Batch)
        """What evaluates some graphs together; pod classes for which the same rules speak have the same."""
        self.own_stacks = lru_cache(maxsize=256)(mixed_stacks)
        """The same of some rules for few rows: those of one shape together."""
        self._remembered: LRUCache[Hashable, RememberedAnswers | None] = LRUCache(MOST_REMEMBERED)

    def remembered(
        self, dtype: type[np.signedinteger], speaking: tuple[Hashable, ...], roots: Sequence[Typed], kept: int
    ) -> RememberedAnswers | None:
        """Return what was said by what rules read of a row, the same for all pod classes for which they speak.

        Args:
            dtype: What holds an answer: filters and scores have different ones.
            speaking: All rules that speak, by policy.
            roots: The graphs of those that are evaluated for who asks about few rows.
            kept: How many others there are.

        Missing: None where the graphs read something else than a few numbers.
        """
        key = (dtype, speaking)
        if key not in self._remembered:
            self._remembered[key] = RememberedAnswers.of(roots, len(speaking), kept, dtype)
        return self._remembered[key]

    def seed(self) -> None:
        """Find out what the rules make of no pod and no node, for all frames."""
        self.context.seed(self.context.no_pod, [rule.root for _, rule in self._rules])

    def dependencies(self, rules: Iterable[RuleRow]) -> list[Dependency]:
        """Return what tells when results of some of the rules have to be read again on rows that did not change."""
        if self._groups is None:
            finished(self._grouping())
        return list(dict.fromkeys(self._group_of[rule] for rule in rules))

    def refresh(self, *, whole: bool = True) -> None:
        """Write the results again where something changed; those of direct rules if all are wanted."""
        version = self.context.version
        if version == (self._whole_version if whole else self._version):
            return
        try:
            finished(self.refreshing(whole=whole))
        except BaseException:  # half of it is written
            self._version = self._whole_version = None
            for group in self._groups or ():
                group.forget()
            raise
        self._version = version
        if whole:
            self._whole_version = version

    def refreshing(self, *, whole: bool = True) -> Pausing[None]:
        """Write the results again where something changed, pausing after each rule or group of rules.

        What changes meanwhile is written when the results are refreshed next.
        """
        if self._groups is None:
            yield from self._grouping()
        columns = self.context.cluster.nodes.columns
        for group in self._groups or ():
            if group.is_direct and not whole:
                continue
            capacity = columns.capacity
            if self.codes.shape[1] != capacity:
                self.codes = np.full((len(self.codes), capacity), FINE, np.int32)
                self.values, self.parts = np.zeros((2, len(self.values), capacity))
            rows = group.due()
            if isinstance(rows, slice):
                yield from self._writing(group, rows)
            elif rows.size:
                self._write_group(group, self.context.frame(self.context.no_pod, rows))
                yield

    def _writing(self, group: RefreshGroup, rows: slice) -> Pausing[None]:
        """Write what a group of rules says of all rows, pausing after each rule."""
        for index, rule in group.rules:
            if self.context.cluster.nodes.size < rows.stop:
                group.forget()
                return
            if not self._take_over(index, rule, rows):
                self._write(index, rule, self.context.frame(self.context.no_pod, rows))
            self.context.results[rule] = self
            yield

    def _take_over(self, index: int, rule: RuleRow, rows: slice) -> bool:
        """Copy what an earlier set's results say of all rows, once; return whether there are any."""
        earlier = self._earlier.pop(rule, None)
        before = None if earlier is None else earlier()
        if before is None:
            return False
        before.refresh()
        known = before.index[rule]
        if isinstance(rule, FilterRow):
            self.codes[index, rows] = before.codes[known, rows]
        else:
            self.stamps[index] += 1
            self.values[index, rows] = before.values[known, rows]
            self.parts[index, rows] = before.parts[known, rows]
        return True

    def _write_group(self, group: RefreshGroup, frame: RuleFrame) -> None:
        """Write what a group of rules says of rows that changed."""
        if frame.rows > FEW:
            if frame.has_room(len(group.batch)):
                group.batch.evaluate(frame)
            for index, rule in group.rules:
                self._write(index, rule, frame)
            return
        filters, scores, batch = group.stacks
        batch.evaluate(frame)
        for filter_stack, places in filters:
            self.codes[places, frame.selected] = filter_stack.result(frame)
        for score_stack, places in scores:
            values = score_stack.values(frame)
            self.values[places, frame.selected] = values
            self.parts[places, frame.selected] = score_stack.part(values)
        for index in group.scoring:
            self.stamps[index] += 1

    def _write(self, index: int, rule: RuleRow, frame: RuleFrame) -> None:
        frame.make_room()
        rows = frame.selected
        if isinstance(rule, FilterRow):
            self.codes[index, rows] = rule.result(frame)
        else:
            values = rule.values(frame)
            self.stamps[index] += 1
            self.values[index, rows] = values
            self.parts[index, rows] = rule.part(values)

    def _grouping(self) -> Pausing[None]:
        """Put rules together that read alike; one that placements may move on rows of others stands for itself.

        It pauses after each rule and each group, because what they count of placed pods is counted then.
        """
        together: dict[Hashable, list[tuple[int, RuleRow]]] = {}
        held: list[Reads] = []
        for index, rule in self._rules:
            reads = Reads([rule.root], self.context.no_pod, self.context)
            held.append(reads)
            key: Hashable = (reads.aspects, reads.counts, is_direct(rule.root))
            if any(_is_lively(node) for node in shared_parts([rule.root], timed=True)):
                key = rule
            together.setdefault(key, []).append((index, rule))
            yield
        groups: list[RefreshGroup] = []
        for group in together.values():
            groups.append(RefreshGroup(self, group))
            yield
        self._groups = groups
        self._group_of = {rule: group for group in groups for _, rule in group.rules}


def _is_lively(node: Typed) -> bool:
    """Return whether something that many rows look at differs between rows and moves with placements."""
    return node.type.shape is Shape.NODES and bool(aspects_read(node.inputs) & LIVELY)
