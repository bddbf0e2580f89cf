"""Signatures of functions, the interface of the type checker for functions, and shared checks.

A rule takes the checker and a call. It returns the typed graph of the call, or reports an error and returns None. The
checker itself is in `checking`, which imports the functions.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from policysched.language.ir.graph import Op, Typed
from policysched.language.ir.tree import Call, Expr, Path, Span
from policysched.language.ir.types import FIELDS, Kind, Shape, Type, Unit
from policysched.language.messages import foreign_calls, suggestions
from policysched.language.messages.diagnostics import Diagnostic, diagnose

MAX_DIAGNOSTICS: Final = 50
"""Maximum number of errors per text, as many as a status shows; beyond it, checking stops."""
LONGEST_QUOTE: Final = 60
"""Maximum length of an expression quoted in a help text; longer expressions are left out. Units: characters."""
Bounds: TypeAlias = dict[Typed, tuple[float, float]]
"""The smallest and the largest value of each compiled expression."""
Phase: TypeAlias = Literal["pod", "filter", "score", "preemption", "let", "group", "placement"]
"""The kind of policy field that has an expression, which decides which inputs the expression may read."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The names that an expression may refer to: inputs of the field's kind, `let` definitions and metrics.

    Attributes:
        phase: `pod` for `appliesTo` and `when`; `group` for the `when` of a placement rule, `placement` for its other
            texts; otherwise the kind of text.
        lets: The defined names in order; None if a definition has an error.
        later: Names that are defined after this text.
        metrics: The declared metrics and their units.
        normalized: Whether the score is normalized later, so that constants may have any size.
        present: Values that are never missing where the text applies, because of its `when` and selectors.
    """

    phase: Phase = "filter"
    lets: Mapping[str, Typed | None] = field(default_factory=dict)
    later: frozenset[str] = frozenset()
    metrics: Mapping[str, Unit] = field(default_factory=dict)
    normalized: bool = False
    present: frozenset[Typed] = frozenset()
    used: set[str] = field(default_factory=set, compare=False)
    """The `let` names that compiled texts used, which all environments derived from this one share."""
    bounds: tuple[Bounds, Bounds] = field(default_factory=lambda: ({}, {}), compare=False, repr=False)
    """Cached ranges of expressions, possible and usual, which all derived environments share."""


class Checker(abc.ABC):
    """Interface through which each built-in function of the expression language checks its arguments' types.

    Attributes:
        peers: Whether the current part is evaluated for placed pods.
        reducing: Whether it is evaluated on other rows than the requested ones.
        placing: Whether it is evaluated for a placement, or for each node of a placement.
        item: The type of the list items for which it is evaluated; None outside of lists.
        meant: Suggestion for the current comparison, if one of its sides is an unknown name.
    """

    def __init__(self, text: str, environment: Environment) -> None:
        self.text = text
        self.environment = environment
        self.diagnostics: list[Diagnostic] = []
        self._parts: list[Span] = []
        self.peers = False
        self.reducing = False
        self.placing = environment.phase == "placement"
        self.item: Type | None = None
        self.meant = ""

    @property
    def early(self) -> str:
        """The variant of the message about values that `when` cannot read."""
        return "placement" if self.environment.phase == "group" else ""

    @property
    def is_over_nodes(self) -> bool:
        """Whether the current part is evaluated for nodes, so that it can read `node.*` and `metrics.*`."""
        return self.environment.phase != "placement" or self.reducing

    @abc.abstractmethod
    def check(self, expr: Expr, unit: Unit | None = None) -> Typed | None:
        """Return a compiled expression (typed graph), None after an error; a literal gets `unit` if possible."""

    @abc.abstractmethod
    def alike(self, operands: Sequence[Expr], unit: Unit | None = None) -> list[Typed | None]:
        """Return compiled operands, which must have the same unit; literals get the unit of the other operands."""

    def report(self, code: str, span: Span, variant: str = "", **values: object) -> Typed | None:
        """Record an error; return None, which replaces the wrong part in the compiled expression."""
        explained = any(part.start < span.start < part.end for part in self._parts)
        if len(self.diagnostics) < MAX_DIAGNOSTICS and not explained:
            self.diagnostics.append(diagnose(code, self.text, span, variant, **values))
        return None

    def explain(self, span: Span) -> None:
        """Suppress later errors in a part of the text, because the last error explains them."""
        self._parts.append(span)

    @abc.abstractmethod
    def source(self, expr: Expr) -> str:
        """Return an expression as help texts quote it; empty if it is too long."""

    def listed(self, exprs: Sequence[Expr]) -> str:
        """Return expressions separated by commas; `...` if they are too long for a help text."""
        texts = [self.source(expr) for expr in exprs]
        given = ", ".join(texts)
        return given if all(texts) and len(given) <= LONGEST_QUOTE else "..."

    @contextlib.contextmanager
    def over(self, *, pods: bool = False, placement: bool = False) -> Iterator[None]:
        """Within the `with` block, check expressions as evaluated for nodes, or for placed pods.

        Args:
            pods: Whether they are evaluated for placed pods.
            placement: Whether they are evaluated for the nodes of a placement; if not, for all nodes.
        """
        before = self.peers, self.reducing, self.placing
        self.peers, self.reducing, self.placing = self.peers or pods, True, self.placing and placement
        yield
        self.peers, self.reducing, self.placing = before

    @contextlib.contextmanager
    def over_items(self, of: Type) -> Iterator[None]:
        """Within the `with` block, check expressions as evaluated for each item of a list."""
        before = self.item, self.reducing
        kind = Kind.STRING if of.unit is None else Kind.QUANTITY
        self.item, self.reducing = Type(kind, of.unit, Shape.NODES), True
        yield
        self.item, self.reducing = before

    def condition(self, expr: Expr, *, inverted: bool = False, meant: str = "") -> Typed | None:
        """Return a compiled expression, which must be a condition; report any other expression.

        Args:
            expr: The expression.
            inverted: Whether `not` precedes it.
            meant: Suggestion if it is not a condition, if known.
        """
        node = self.check(expr)
        if node is not None and node.type.kind is not Kind.BOOL:
            hint = meant or suggestions.to_condition(node, self.source(expr), inverted=inverted)
            return self.report("E0302", expr.span, type=node.type, hint=hint)
        return node

    def string(self, expr: Expr, of: Call | None = None) -> Typed | None:
        """Return a compiled expression, which must be a string; report any other expression.

        Args:
            expr: The expression.
            of: The call whose first argument it is, if any.
        """
        node = self.check(expr)
        if node is not None and node.type.kind is not Kind.STRING:
            hint = suggestions.to_string(node)
            if of is not None and node.type.kind is Kind.LIST:
                rest = self.listed(of.arguments[1:])
                hint = foreign_calls.of_list(of.function.dotted, self.source(expr) or "...", rest)
            return self.report("E0307", expr.span, type=node.type, help=hint)
        return node

    def quantity(self, expr: Expr, node: Typed | None) -> Typed | None:
        """Return a compiled expression, which must be a quantity; report any other expression."""
        if node is not None and node.type.kind is not Kind.QUANTITY:
            return self.report("E0303", expr.span, type=node.type, hint=suggestions.to_number(node))
        return node


Rule: TypeAlias = Callable[[Checker, Call, Unit | None], Typed | None]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language: how calls are checked, and how the documentation describes it.

    Attributes:
        rule: Checks a call and returns its graph.
        least: Smallest number of arguments.
        most: Largest number of arguments, None for any number.
        form: The arguments, with optional ones in brackets.
        help: The value, as the reference describes it.
        unit: The arguments that determine the unit of the value, if any.
        example: An expression with a call.
    """

    rule: Rule
    least: int
    most: int | None
    form: str
    help: str
    unit: slice | None = None
    example: str = ""

    @property
    def expected(self) -> str:
        """Return the accepted numbers of arguments in words."""
        if self.most == self.least:
            return number_of_arguments(self.least)
        if self.most is None:
            return f"at least {number_of_arguments(self.least)}"
        if self.least == 0:
            return f"at most {number_of_arguments(self.most)}"
        return f"{self.least} or {number_of_arguments(self.most)}"


def number_of_arguments(number: int) -> str:
    """Return a number of arguments in words, for example "one argument"."""
    return "one argument" if number == 1 else f"{number} arguments"


def least_or_greatest(checker: Checker, call: Call) -> str:
    """Return the suggestion to call `least` or `greatest` for `min` or `max` with several values."""
    return f"{'least' if call.function.dotted == 'min' else 'greatest'}({checker.listed(call.arguments)})"


def over_cluster(checker: Checker, call: Call) -> str:
    """Return the fix for a function called with `cluster.nodes` or `cluster.pods`; empty for another call.

    Otherwise empty.
    """
    first, *rest = call.arguments or (None,)
    names = first.names if isinstance(first, Path) and len(rest) == 1 else ()
    return foreign_calls.over_cluster(call.function.dotted, names, checker.listed(rest)) if rest else ""


def warn_of_no_peer(checker: Checker, expr: Expr, node: Typed) -> None:
    """Report an argument of a function over placed pods (`node.pods.*`) that reads fields, but none of `peer`."""
    if not node.inputs or any(item.root == "peer" for item in node.inputs):
        return
    own = [item.text for item in node.inputs if item.root == "pod" and ("peer", *item.path) in FIELDS]
    hint = "use `peer` for the placed pod"
    if own:
        hint = f"`pod` is the pod that is scheduled; for the placed pod write `{'peer' + own[0].removeprefix('pod')}`"
    checker.report("W0703", expr.span, "each", each="placed pod", hint=hint)


def all_of(nodes: Sequence[Typed | None]) -> list[Typed] | None:
    """Return compiled expressions; None if any of them is None."""
    found = [node for node in nodes if node is not None]
    return found if len(found) == len(nodes) else None


def strings(checker: Checker, call: Call) -> list[Typed] | None:
    """Return the compiled arguments of a call, which must be strings; None if any argument is invalid."""
    return all_of([checker.string(one, None if index else call) for index, one in enumerate(call.arguments)])


def quantities(checker: Checker, call: Call, unit: Unit | None) -> list[Typed] | None:
    """Return the compiled arguments of a call, which must be quantities of one unit; None if any is invalid."""
    checked = checker.alike(call.arguments, unit)
    nodes = all_of([checker.quantity(a, node) for a, node in zip(call.arguments, checked, strict=True)])
    return nodes if nodes is not None and one_type(checker, call, nodes) else None


def one_type(checker: Checker, call: Call, nodes: Sequence[Typed]) -> bool:
    """Return whether compiled expressions have the same type; report the first one of another type."""
    first = nodes[0]
    for node in nodes[1:]:
        if not node.type.like(first.type):
            hint = suggestions.difference(first, node, *call.arguments)
            name = call.function.dotted
            checker.report("E0301", call.span, "mix", name=name, left=first.type, right=node.type, hint=hint)
            return False
    return True


def constant_text(checker: Checker, call: Call, index: int, node: Typed, *, must: bool = True) -> bool:
    """Return whether a string is not empty and the same for every node; report it otherwise."""
    span, name = call.arguments[index].span, call.function.dotted
    if node.type.shape is not Shape.SCALAR:
        checker.report("E0308", span)
    elif must and node.op != Op.CONSTANT:
        checker.report("E0307", span, "constant", name=name)
    elif node.data == "":
        checker.report("E0312", span, "empty", name=name)
    else:
        return True
    return False
