"""A policy whose texts were compiled: what its rules read, need and decide, without any cluster.

Immutable: an edit of the object makes another one, swapped in between two cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from policysched.language.checking.estimates import total_of
from policysched.language.ir.graph import Input, Op, Program, Typed, make
from policysched.language.ir.types import BOOL
from policysched.model.policy import PolicyKey, PolicySpec
from policysched.model.selection.selectors import LabelMatcher

RESOLVABLE = frozenset(("requested", "free", "pods"))
"""The fields of `node.` and `cluster.` that removing pods can change; all that is known of peers is one more."""
FILTER_UNITS, SCORE_UNITS, NORMALIZED_UNITS = 1, 3, 12
"""What a rule costs beside its expressions; one that normalises is worked out for every decision."""


@dataclass(frozen=True, slots=True)
class CompiledFilter:
    """A filter rule: where `require` is not true the node is rejected."""

    name: str
    when: Program | None
    require: Program
    message: str | None
    stated: Program | None = None
    """The condition as it is written, where `require` leaves a `?? false` out; None where they are the same."""

    @property
    def written(self) -> Program:
        """The condition as it is written."""
        return self.require if self.stated is None else self.stated

    @property
    def resolvable(self) -> bool:
        """Whether removing pods can change the verdict."""
        return any(_is_freed(item) for item in self.require.inputs)


@dataclass(frozen=True, slots=True)
class CompiledScore:
    """A score rule: a number a node, normalised or not."""

    name: str
    weight: int
    when: Program | None
    value: Program
    takes_maximum: bool
    """Whether values are scaled by their maximum over the feasible nodes."""
    missing: float
    """What a node without a value gets, after normalising."""
    has_missing_arm: bool

    @property
    def normalizes(self) -> bool:
        """Whether a node's score depends on which nodes are feasible."""
        return self.takes_maximum or self.value.root.normalizes


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """One generation of a policy, ready to run."""

    key: PolicyKey
    generation: int
    spec: PolicySpec
    pods: LabelMatcher | None
    namespaces: LabelMatcher | None
    applies_to: Program | None
    filters: tuple[CompiledFilter, ...]
    scores: tuple[CompiledScore, ...]
    units: int = 0
    """What it adds to a decision, see `units_of`."""

    @property
    def conditions(self) -> tuple[Program, ...]:
        """The programs that say whether rules speak for a pod."""
        texts = (self.applies_to, *(rule.when for rule in self.filters), *(rule.when for rule in self.scores))
        return tuple(program for program in texts if program is not None)

    @property
    def filter_programs(self) -> tuple[Program, ...]:
        """The programs that decide about rejections."""
        texts = (self.applies_to, *(rule.when for rule in self.filters), *(rule.require for rule in self.filters))
        return tuple(program for program in texts if program is not None)

    @property
    def programs(self) -> tuple[Program, ...]:
        """All programs of the policy."""
        return (
            *self.conditions,
            *(rule.written for rule in self.filters),
            *(rule.value for rule in self.scores),
        )

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Everything the policy reads, in the order of its fields."""
        return tuple(dict.fromkeys(item for program in self.programs for item in program.inputs))


def units_of(policy: CompiledPolicy) -> int:
    """Return what a policy adds to a decision; nothing if it is not enforced.

    Units: operations over all nodes.
    """
    if policy.spec.mode != "Enforce":
        return 0
    scores = (NORMALIZED_UNITS if rule.normalizes else SCORE_UNITS for rule in policy.scores)
    return total_of(program.root for program in policy.programs) + FILTER_UNITS * len(policy.filters) + sum(scores)


def compiled_filter(name: str, when: Program | None, require: Program, message: str | None) -> CompiledFilter:
    """Make a filter rule whose condition still knows what was missing behind a `?? false`.

    A filter keeps the nodes where its condition is true, so `x ?? false` says the same as `x` inside of `and` and `or`.
    """
    root = _without_defaults(require.root)
    if root is require.root:
        return CompiledFilter(name, when, require, message)
    return CompiledFilter(name, when, replace(require, root=root), message, require)


def _without_defaults(node: Typed) -> Typed:
    if node.op is Op.DEFAULT and node.args[1].op is Op.CONSTANT and node.args[1].data is False:
        return _without_defaults(node.args[0])
    if node.op not in {Op.AND, Op.OR}:
        return node
    args = [_without_defaults(arg) for arg in node.args]
    return node if tuple(args) == node.args else make(node.op, args, BOOL.over(*(arg.type for arg in args)))


def _is_freed(item: Input) -> bool:
    return item.root == "peer" or (item.root in {"node", "cluster"} and item.path[0] in RESOLVABLE)
