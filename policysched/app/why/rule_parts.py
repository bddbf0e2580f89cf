"""A policy's filters taken apart: each side of an `and` is compiled as a condition of its own and asked about alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from policysched.app.why.asking import Asking
from policysched.app.why.changes import Edit, edited, keyed
from policysched.framework import SKIP, Mask, RowNumbers, Status
from policysched.language.ir.graph import ANY_KEY, Input, steps
from policysched.language.ir.tree import Comparison, Expr, Literal, LiteralKind, Logic, Path
from policysched.language.ir.types import Unit
from policysched.language.messages.amounts import written
from policysched.language.messages.diagnostics import Diagnostic
from policysched.language.syntax.formatting import format_tree
from policysched.language.syntax.parser import parse
from policysched.model.objects import Metadata, Pod
from policysched.model.policy import FilterRule, Policy
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.inputs import node_column
from policysched.rules.plugin.policy_plugin import PolicyPlugin
from policysched.rules.results.rule_rows import FINE, shortened
from policysched.visible import visible

MOST_VALUES: Final = 4
"""Of how many inputs the values are told."""


@dataclass(frozen=True, slots=True)
class RulePart:
    """One condition of a rule, and where it is not true."""

    key: str
    """The policy and the rule."""
    rule: str
    text: str
    rows: Mask
    said: Callable[[RowNumbers], str]
    """Says it with the values of the first of some rows."""
    on_node: Edit | None = None
    on_node_text: str = ""


def rule_parts(asking: Asking, plugin: PolicyPlugin, pod: Pod) -> Iterator[RulePart]:
    """Take the filters of a policy apart that keep nodes out; one that cannot be taken apart stays whole."""
    state: Any = plugin.prepare_filter(pod, asking.cluster)
    if state is SKIP or isinstance(state, Status):
        return
    for row, codes in list(state.by_rule(slice(0, asking.size))):
        if not (codes != FINE).any():
            continue
        rule = next(one for one in plugin.policy.spec.filters if one.name == row.rule.name)
        parsed = parse(rule.require)
        if isinstance(parsed, Diagnostic):
            continue
        sides = parsed.operands if isinstance(parsed, Logic) and parsed.operator == "and" else (parsed,)
        pieces = [_part(asking, plugin, rule, side, pod) for side in sides]
        yield from (one for one in pieces if one is not None)


def _part(asking: Asking, plugin: PolicyPlugin, rule: FilterRule, side: Any, pod: Pod) -> RulePart | None:
    text = format_tree(side)
    policy = plugin.policy
    alone = replace(policy.spec, filters=(replace(rule, require=text),), scores=(), preemption=None)
    compiled = compile_policy(Policy(metadata=Metadata(name=policy.key), spec=alone)).policy
    if compiled is None:
        return None
    codes, _ = asking.answers(PolicyPlugin(compiled), pod)
    rejected: Mask = codes != 0
    edit, label = _labelled(side)
    shown = f"policy {policy.key}/{rule.name}: {shortened(text)}"

    def said(rows: RowNumbers) -> str:
        values = _values(asking, compiled, pod, rows[:1])
        return f"{shown} ({values})" if values else shown

    return RulePart(f"{policy.key}/{rule.name}", rule.name, shown, rejected, said, edit, label)


def _labelled(side: Expr) -> tuple[Edit | None, str]:
    """Return what gives a node the label that a comparison with a text wants, and how that is said."""
    if not isinstance(side, Comparison) or side.operator != "==":
        return None, ""
    for path, other in ((side.left, side.right), (side.right, side.left)):
        if isinstance(path, Path) and path.dotted == "node.labels":
            key, value = _text(path.key), _text(other)
            if key and value is not None:
                return edited("metadata.labels", keyed(key, value)), f"label {key}={value}"
    return None, ""


def _text(one: object) -> str | None:
    return one.text if isinstance(one, Literal) and one.kind is LiteralKind.STRING else None


def _values(asking: Asking, compiled: CompiledPolicy, pod: Pod, rows: RowNumbers) -> str:
    """Say what a condition reads of a row."""
    program = compiled.filters[0].require
    read = [item for item in program.inputs if item.root in {"node", "pod", "metrics"}]
    units = {node.data: node.type.unit for node in steps(program.root) if isinstance(node.data, Input)}
    told = [(item, _shown(_value(asking, compiled, pod, item, rows), units.get(item))) for item in dict.fromkeys(read)]
    return ", ".join(f"{item.text} is {text}" for item, text in told[:MOST_VALUES] if text)


def _value(asking: Asking, compiled: CompiledPolicy, pod: Pod, item: Input, rows: RowNumbers) -> object:
    """Return the value of an input on a row, SKIP for an input without a value of its own."""
    if item.key == ANY_KEY:
        return SKIP
    if item.root == "pod":
        return PolicyPlugin(compiled).context(asking.cluster).inputs(pod).value(item)
    if item.root == "node" and item.path[0] in {"age", "pods"}:
        return SKIP
    found = node_column(asking.cluster, pod, item, rows)[0]
    if isinstance(found, np.int32):
        return asking.cluster.strings.text(int(found)) if found >= 0 else None
    return found.item()


def _shown(value: object, unit: Unit | None) -> str:
    if value is SKIP:
        return ""
    if value is None or value != value:  # noqa: PLR0124 - NaN
        return "missing"
    if isinstance(value, str):
        return f'"{visible(shortened(value))}"'
    if isinstance(value, bool):
        return str(value).lower()
    return written(value, unit) if isinstance(value, int | float) else visible(shortened(str(value)))
