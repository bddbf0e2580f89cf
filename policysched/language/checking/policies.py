"""The `let` definitions of a policy, and its cost limits.

It knows lists of names and programs, not the object they come from.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from policysched.language.checking.compile import Compiled, Want, compile_expression
from policysched.language.checking.costs import MAX_NODE_OPERATIONS, MAX_POD_OPERATIONS, Cost, cost_of
from policysched.language.functions import FUNCTIONS
from policysched.language.ir.graph import Program, Typed
from policysched.language.ir.names import ROOTS, Environment
from policysched.language.ir.tree import Span
from policysched.language.messages.diagnostics import Diagnostic, diagnose
from policysched.language.syntax.grammar import KEYWORDS

NAME: Final = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class CompiledLet:
    """One `let`: what is wrong with its name, and its value."""

    name: str
    name_diagnostics: tuple[Diagnostic, ...]
    value: Compiled


def reserved_names() -> frozenset[str]:
    """Return the names that no `let` and no metric can have."""
    return KEYWORDS | ROOTS | {name for name in FUNCTIONS if NAME.fullmatch(name)}


def check_name(name: str) -> Diagnostic | None:
    """Return what is wrong with the name of a `let` or of a metric."""
    span = Span(0, len(name))
    if NAME.fullmatch(name) is None:
        return diagnose("E0208", name, span, "form", name=name)
    if name in reserved_names():
        return diagnose("E0208", name, span, name=name)
    return None


def each_let(lets: Sequence[tuple[str, str]], environment: Environment) -> Iterator[tuple[CompiledLet, Environment]]:
    """Compile names and texts in their order; each comes with the environment for the texts below it.

    A name with an error is known there, so that its uses do not repeat the error, but for `node` and the like, which
    keep their meaning.
    """
    known: dict[str, Typed | None] = dict(environment.lets)
    for index, (name, text) in enumerate(lets):
        later = frozenset(other for other, _ in lets[index:]) - set(known) - ROOTS
        around = dataclasses.replace(environment, phase="let", lets=dict(known), later=later)
        value = compile_expression(text, around, Want.ANY)
        problem = check_name(name)
        if problem is None and name in known:
            problem = diagnose("E0207", name, Span(0, len(name)), "twice", name=name)
        elif name not in ROOTS:
            known[name] = value.program.root if value.program and problem is None else None
        compiled = CompiledLet(name, (problem,) if problem else (), value)
        yield compiled, dataclasses.replace(environment, lets=dict(known))


def policy_cost(programs: Iterable[Program]) -> Cost:
    """Return what programs cost together, equal parts counted once."""
    return cost_of(program.root for program in programs)


def check_cost(cost: Cost) -> Diagnostic | None:
    """Return the error of a policy over the limits."""
    limits = (("node", cost.nodes, MAX_NODE_OPERATIONS), ("pod", cost.pods, MAX_POD_OPERATIONS))
    for kind, number, limit in limits:
        if number > limit:
            return diagnose("E0601", "", Span(0, 0), number=number, kind=kind, limit=limit)
    return None
