"""The rules of the functions that take strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policysched.language.functions.arguments import constant_text, strings
from policysched.language.functions.versions import canonical
from policysched.language.ir.graph import Op, Typed, constant, make
from policysched.language.ir.lengths import MAX_PARTS, MAX_TEXT
from policysched.language.ir.tree import Call
from policysched.language.ir.types import BOOL, NUMBER, STRING, VERSION, Gap, Kind, Shape, Type, Unit, list_of
from policysched.language.messages.suggestions import shown

if TYPE_CHECKING:
    from policysched.language.checking.checker import Checker


def number(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `number(s)`."""
    node = _convertible(checker, call)
    return node and make(Op.NUMBER, (node,), NUMBER.over(node.type).filled(Gap.INPUT))


def version(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `version(s)`; that of a constant is a constant."""
    node = _convertible(checker, call)
    if node is None:
        return None
    if node.op is not Op.CONSTANT:
        return make(Op.VERSION, (node,), VERSION.over(node.type).filled(Gap.INPUT))
    found = canonical(str(node.data))
    if found is None:
        return checker.report("E0312", call.arguments[0].span, "version", found=shown(str(node.data)))
    return constant(found, VERSION)


def _convertible(checker: Checker, call: Call) -> Typed | None:
    node = checker.check(call.arguments[0])
    if node is not None and node.type.kind is not Kind.STRING:
        variant = "version" if call.function.dotted == "version" and node.op is Op.CONSTANT else ""
        return checker.report("E0311", call.arguments[0].span, variant, type=node.type, name=call.function.dotted)
    return node


def text_test(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `starts_with`, `ends_with`, `contains`."""
    nodes = strings(checker, call)
    if nodes is None:
        return None
    return make(Op(call.function.dotted), nodes, BOOL.over(*(node.type for node in nodes)))


def glob(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    """Check `glob(s, p)`."""
    node = text_test(checker, call, unit)
    if node is None or not constant_text(checker, call, 1, node.args[1], must=False):
        return None
    if max(arg.length.most for arg in node.args) <= MAX_TEXT:
        return node
    return make(Op.GLOB, node.args, _perhaps_too_long(node.type))


def concat(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `concat(a, …)`."""
    nodes = strings(checker, call)
    if nodes is None:
        return None
    least = sum(node.length.least for node in nodes)
    if least > MAX_TEXT:
        return checker.report("E0313", call.span, number=least, limit=MAX_TEXT)
    result = STRING.over(*(node.type for node in nodes))
    most = sum(node.length.most for node in nodes)
    return make(Op.CONCAT, nodes, result if most <= MAX_TEXT else _perhaps_too_long(result))


def split(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `split(s, sep)`."""
    nodes = strings(checker, call)
    if nodes is None:
        return None
    if nodes[0].type.shape is not Shape.SCALAR:
        return checker.report("E0308", call.arguments[0].span)
    if not constant_text(checker, call, 1, nodes[1]):
        return None
    result = list_of(STRING).filled(nodes[0].type.gap)
    parts = nodes[0].length.most // nodes[1].length.most + 1
    return make(Op.SPLIT, nodes, result if parts <= MAX_PARTS else _perhaps_too_long(result))


def _perhaps_too_long(result: Type) -> Type:
    """Return the type of what is missing where a string is longer than functions take."""
    return result.filled(max(result.gap, Gap.OWN))
