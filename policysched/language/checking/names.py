"""Resolves names: fields, metrics, `let` names and functions in paths and calls.

Only this module reads the environment. A path with a computed key becomes an operation on the key; one with a constant
key is an ordinary input.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from policysched.language.checking.doubts import warn_of_effect
from policysched.language.checking.impossible import warn_of_images_one_by_one, warn_of_key, warn_of_parts
from policysched.language.functions import FUNCTIONS
from policysched.language.functions.signatures import Checker, least_or_greatest, number_of_arguments, over_cluster
from policysched.language.ir.graph import AGGREGATES, ANY_KEY, ITEM, Input, Op, Typed, make
from policysched.language.ir.tree import Call, Expr, Literal, LiteralKind, Path, Span
from policysched.language.ir.types import (
    FIELDS,
    GROUP_CONSTANTS,
    GROUPS,
    METHODS,
    RESOURCE_NAMES,
    ROOTS,
    Gap,
    InputField,
    Kind,
    Names,
    Shape,
    Type,
    Unit,
)
from policysched.language.messages import foreign_syntax, suggestions
from policysched.language.messages.suggestions import did_you_mean, shown

_REST: Final = re.compile(r"[/-][A-Za-z0-9_][A-Za-z0-9_./-]*")
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*")


def check_path(checker: Checker, path: Path) -> Typed | None:
    """Return a compiled path (a field, metric, `let` name or list item) that is not a function's name."""
    if path.names[0] == "item" and checker.item is not None:
        return _item(checker, path, checker.item)
    return _named(checker, path)


def _named(checker: Checker, path: Path) -> Typed | None:
    """Return a compiled path that is a `let` name, a metric or a field."""
    root = path.names[0]
    environment = checker.environment
    if root in environment.lets:
        environment.used.add(root)
        return _let(checker, path, environment.lets[root])
    if root in environment.later:
        return checker.report("E0207", path.span, name=root)
    if root in {"peer", "victim", "placement"} and not _is_in_scope(checker, path):
        return None
    if root not in ROOTS or root == "metrics":
        return _metric(checker, path) if root == "metrics" else _unknown(checker, path)
    found = _field(checker, path)
    if found is not None and found.called:
        return checker.report("E0202", path.span, "call", path=path.dotted)
    return _read(checker, path, found) if found is not None else None


def _item(checker: Checker, path: Path, of: Type) -> Typed | None:
    """Return the compiled `item`, the current item inside a function over a list."""
    if len(path.names) > 1 or path.key is not None:
        return checker.report("E0201", path.span, "none", name="item")
    return make(Op.INPUT, (), of, ITEM)


def _is_in_scope(checker: Checker, path: Path) -> bool:
    """Return whether a path may begin with `peer`, `victim` or `placement` here; report it if not."""
    if path.names[0] == "placement":
        if not checker.placing:
            checker.report("E0210", path.name_spans[0])
        return checker.placing
    guards, key = checker.environment.phase == "preemption", _text(path.key) or "..."
    if path.names[0] == "peer":
        if not checker.peers:
            hint = foreign_syntax.victim(path.names, key) if guards and not checker.reducing else None
            checker.report("E0204", path.name_spans[0], help=hint)
        return checker.peers
    if not guards or checker.reducing:
        hint = foreign_syntax.peer(path.names, key) if checker.peers and not guards else None
        checker.report("E0209", path.name_spans[0], "inner" if guards else "", help=hint)
        return False
    return True


def _let(checker: Checker, path: Path, node: Typed | None) -> Typed | None:
    name = path.names[0]
    if len(path.names) > 1 or path.key is not None:
        return checker.report("E0201", path.span, "none", name=name)
    if node is None:
        return None
    phase = checker.environment.phase
    if why := _why_let_is_closed(checker, node):
        return checker.report(why.code, path.span, why.variant, name=name)
    if node.normalizes and (phase not in {"score", "let"} or checker.reducing):
        return checker.report("E0506", path.span, "inner" if phase in {"score", "let"} else "")
    if node.over_pods and checker.peers:
        return checker.report("E0402", path.span, "let", name=name)
    return node


def _is_of_the_pod(item: Input) -> bool:
    """Return whether an input has one value for each pending pod, so that `appliesTo` and `when` can read it."""
    return item.root in {"pod", "clock"} or (item.root == "group" and item.path[0] in GROUP_CONSTANTS)


class _Closed(NamedTuple):
    """Why a text cannot read an input: the code of the error and the variant of its message."""

    code: str
    variant: str = ""


def _why_closed(checker: Checker, item: Input) -> _Closed | None:
    """Return why the current part of a text cannot read an input; None if it can read the input."""
    phase = checker.environment.phase
    if phase == "pod" and not _is_of_the_pod(item):
        return _Closed("E0405", "group" if item.root == "group" else "")
    if phase == "group" and item.root not in {"group", "clock"}:
        return _Closed("E0405", checker.early)
    if phase != "placement":
        return None
    if item.root == "pod" or item.path[0] == "cached_image_bytes":
        return _Closed("E0406", "pod")
    return None if checker.is_over_nodes or item.root not in {"node", "metrics"} else _Closed("E0406")


def _why_let_is_closed(checker: Checker, node: Typed) -> _Closed | None:
    """Return why the current part of a text cannot use a `let` name; None if it can use the name."""
    phase, is_scalar = checker.environment.phase, node.type.shape is Shape.SCALAR
    if phase in {"pod", "group"}:
        is_early = is_scalar and node.local and not any(_why_closed(checker, item) for item in node.inputs)
        return None if is_early else _Closed("E0405", checker.early)
    if not is_scalar and not checker.is_over_nodes:
        return _Closed("E0406")
    of_pod = (why for item in node.inputs if (why := _why_closed(checker, item)) and why.variant)
    return next(of_pod, None)


def _unknown(checker: Checker, path: Path) -> Typed | None:
    name = path.names[0]
    if name in FUNCTIONS:
        return checker.report("E0201", path.name_spans[0], "function", name=name)
    known = (*ROOTS, *checker.environment.lets, "true", "false")
    roots = ("pod",) if checker.environment.phase == "pod" else ("node", "pod", "cluster")
    roots = ("peer", *roots) if checker.peers else roots
    roots = ("victim", *roots) if checker.environment.phase == "preemption" else roots
    roots = ("placement", "group", "cluster") if not checker.is_over_nodes else roots
    suggestion = foreign_syntax.foreign_root(path.names, _text(path.key) or "...", roots) or foreign_syntax.name(
        name, known, checker.environment.metrics, roots
    )
    if checker.meant:
        suggestion = checker.meant
    elif not suggestion:
        alone = len(path.names) == 1 and path.key is None
        suggestion = f'write `"{shown(name)}"` if it is a text' if alone else foreign_syntax.NAMES_BEGIN
    return checker.report("E0201", path.name_spans[0], name=name, suggestion=suggestion)


def _metric(checker: Checker, path: Path) -> Typed | None:
    metrics = checker.environment.metrics
    if len(path.names) == 1:
        fields = ", ".join(metrics) or "the metrics of `spec.metrics`"
        return checker.report("E0202", path.span, "group", path="metrics", instead=f"its fields are {fields}")
    name = path.names[1]
    if name not in metrics:
        meant = did_you_mean(name, metrics)
        return checker.report("E0203", path.name_spans[1], name=name, suggestion=meant and f"; {meant}")
    if len(path.names) > 2:
        return _no_such(checker, path, 3, f"write `metrics.{name}`")
    return _read(checker, path, InputField(Type(Kind.QUANTITY, metrics[name], Shape.NODES, Gap.INPUT)))


def _field(checker: Checker, path: Path) -> InputField | None:
    names = path.names
    for size in range(2, len(names) + 1):
        if all(names[:size] not in known for known in (FIELDS, GROUPS, METHODS)):
            tail = _tail(checker, path, names[: size - 1])
            last = names[-1]
            metric = f"write `metrics.{last}`" if names[0] == "node" and last in checker.environment.metrics else ""
            meant = checker.meant or metric or foreign_syntax.field(names, size, tail, _text(path.key))
            _no_such(checker, path, size, meant, tail)
            return None
    found = FIELDS.get(names)
    if found is None and names in METHODS:
        checker.report("E0202", path.span, "of pods", path=path.dotted)
    elif found is None:
        checker.report(
            "E0202", path.span, "group", path=path.dotted, instead=foreign_syntax.group(names, _text(path.key))
        )
    return found


def _text(key: Expr | None) -> str:
    return key.text if isinstance(key, Literal) and key.kind is LiteralKind.STRING else ""


def _no_such(checker: Checker, path: Path, size: int, suggestion: str, tail: str = "") -> Typed | None:
    parent, name, span = ".".join(path.names[: size - 1]), path.names[size - 1], path.name_spans[size - 1]
    if tail:
        span = Span(span.start, path.span.end + len(tail))
        name = checker.text[span.start : span.end]
    result = checker.report("E0202", span, parent=parent, field=shown(name), suggestion=suggestion)
    if tail:
        checker.explain(span)
    return result


def _tail(checker: Checker, path: Path, parent: Names) -> str:
    """Return what follows a path in an unquoted key: `/gpu` in `pod.requests.nvidia.com/gpu`."""
    found = FIELDS.get(parent)
    if path.key is not None or found is None or not found.keyed:
        return ""
    tail = _REST.match(checker.text, path.span.end)
    known = {*ROOTS, *checker.environment.lets}
    return tail[0] if tail and not known.intersection(_NAME.findall(tail[0])) else ""


def _closed(checker: Checker, path: Path) -> bool:
    why = _why_closed(checker, Input(path.names[0], path.names[1:]))
    if why is not None:
        checker.report(why.code, path.span, why.variant, name=path.dotted)
    return why is not None


def _read(checker: Checker, path: Path, found: InputField) -> Typed | None:
    if _closed(checker, path):
        return None
    if path.key is None:
        if found.keyed:
            variant = "resource" if path.names in GROUPS else "key"
            return checker.report("E0202", path.span, variant, path=path.dotted)
        return make(Op.INPUT, (), found.type, Input(path.names[0], path.names[1:]))
    if not found.keyed:
        return checker.report("E0202", path.span, "no key", path=path.dotted)
    key = _key(checker, path.key, path.key_span)
    if key is not None:
        warn_of_key(checker, path.names, key, path.key_span)
    return key and _keyed(path.names, found, key)


def _key(checker: Checker, expr: Expr, span: Span) -> Typed | None:
    """Return a compiled key, which must be a string that is the same for every node."""
    key = checker.check(expr)
    if key is not None and key.type.kind is not Kind.STRING:
        return checker.report("E0307", span, type=key.type, help=suggestions.to_string(key))
    if key is not None and key.type.shape is not Shape.SCALAR:
        return checker.report("E0308", span)
    return key


def _keyed(names: Names, found: InputField, key: Typed) -> Typed:
    root, path = names[0], names[1:]
    if key.op != Op.CONSTANT:
        result = found.type.at_least(key.type.gap)
        return make(Op.KEYED, (key,), result, Input(root, path, ANY_KEY))
    text = str(key.data)
    named = (*names, RESOURCE_NAMES.get(text, ""))
    if named in FIELDS:
        return make(Op.INPUT, (), FIELDS[named].type, Input(root, named[1:]))
    return make(Op.INPUT, (), found.type, Input(root, path, text))


def check_call(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Check a call of a function or aggregate, and return the compiled call."""
    name = call.function.dotted
    if call.function.key is not None:
        return checker.report("E0205", call.function.span, name=f"{name}[...]", suggestion="")
    if call.by is not None and name not in AGGREGATES:
        return checker.report("E0401", call.by.span, name=name)
    method = FIELDS.get(call.function.names)
    if method is not None and method.called:
        return _called_path(checker, call)
    return _function(checker, call, unit)


def _meant(checker: Checker, call: Call) -> str:
    """Return the suggestion for a call with too many arguments; empty if there is none."""
    name, arguments = call.function.dotted, call.arguments
    if said := over_cluster(checker, call):
        return said.removeprefix("write `").removesuffix("`")
    if name in {"min", "max"}:
        return least_or_greatest(checker, call)
    if name in {"any", "all"} and len(arguments) == 1:
        return _over_all(name, checker.listed(arguments))
    if name == "has" and len(arguments) == 2 and isinstance(arguments[0], Path) and (key := _text(arguments[1])):
        return foreign_syntax.presence(arguments[0].names, shown(key))
    return ""


def _over_all(name: str, condition: str) -> str:
    """Return the fix for `any` or `all` without a list: over placed pods if it reads `peer`, else over nodes."""
    if "peer." in condition:
        return f"node.pods.{name}({condition})"
    return f"count({condition}) " + ("> 0" if name == "any" else "== cluster.nodes")


def _called_path(checker: Checker, call: Call) -> Typed | None:
    name, number = call.function.dotted, len(call.arguments)
    if number != 1:
        form = foreign_syntax.written(call.function.names)
        return checker.report("E0206", call.span, name=name, expected=number_of_arguments(1), number=number, form=form)
    key = _key(checker, call.arguments[0], call.arguments[0].span)
    if key is None or _closed(checker, call.function):
        return None
    warn_of_effect(checker, call, key)
    warn_of_key(checker, call.function.names, key, call.arguments[0].span)
    return _keyed(call.function.names, FIELDS[call.function.names], key)


def _function(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    name, number = call.function.dotted, len(call.arguments)
    function = FUNCTIONS.get(name)
    if function is None:
        given = checker.listed(call.arguments)
        beside = foreign_syntax.around(checker.text, *call.span)
        suggestion = foreign_syntax.call(call.function.names, (*FUNCTIONS, "node.taints.has"), given, beside)
        return checker.report("E0205", call.function.span, name=name, suggestion=suggestion)
    if number < function.least or (function.most is not None and number > function.most):
        form = _meant(checker, call) or f"{name}({function.form})"
        return checker.report("E0206", call.span, name=name, expected=function.expected, number=number, form=form)
    node = function.rule(checker, call, unit)
    warn_of_parts(checker, call, node)
    if node is not None and len(call.arguments) > 1:
        warn_of_images_one_by_one(checker, call)
    return node
