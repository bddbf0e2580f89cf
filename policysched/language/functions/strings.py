"""Functions of strings: conversions, tests, patterns, joining and splitting; parsing and ordering of versions.

A version is `v?N(.N)*(-pre)?(+build)?`: numbers, the parts of a pre-release, and a build, which is ignored. The order
is that of Semantic Versioning. Missing numbers count as 0, so 1.28 and v1.28.0 are equal. Versions are codes of their
canonical texts: equal versions have one code, and two codes are compared through a table.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from policysched.language.functions.signatures import Checker, Function, constant_text, strings
from policysched.language.ir.graph import MAX_PARTS, MAX_TEXT, Op, Typed, constant, make
from policysched.language.ir.tree import Call
from policysched.language.ir.types import BOOL, NUMBER, STRING, VERSION, Gap, Kind, Shape, Unit, list_of
from policysched.language.messages import suggestions
from policysched.language.messages.suggestions import shown

_VERSION: Final = re.compile(r"v?([0-9]+(?:\.[0-9]+)*)(?:-([\w-]+(?:\.[\w-]+)*))?(?:\+[\w.-]*)?", re.ASCII)
_Part: TypeAlias = tuple[int, int, str]
_Key: TypeAlias = tuple[tuple[_Part, ...], int, tuple[_Part, ...]]


def canonical(text: str) -> str | None:
    """Return a version in canonical form; None if the text is no version."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    numbers = [_digits(part) for part in found[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == "0":
        numbers.pop()
    release = ".".join(numbers)
    if found[2] is None:
        return release
    return f"{release}-{'.'.join(_digits(part) if part.isdigit() else part for part in found[2].split('.'))}"


def _digits(part: str) -> str:
    return part.lstrip("0") or "0"


def compare(left: str, right: str) -> int:
    """Return -1, 0 or 1 if a canonical version is older than, equal to or newer than another."""
    one, other = key(left), key(right)
    return (one > other) - (one < other)


def key(text: str) -> _Key:
    """Return the sort key of a canonical version; keys of short versions are cached."""
    return _remembered_key(text) if len(text) <= _LONGEST_CACHED else _key(text)


def _key(text: str) -> _Key:
    release, dash, pre = text.partition("-")
    # A release is newer than its pre-releases.
    return _ordered_parts(release), not dash, _ordered_parts(pre) if dash else ()


_LONGEST_CACHED: Final = 64
"""Maximum length of a version whose sort key is cached. Units: characters."""
_remembered_key: Final = functools.lru_cache(maxsize=1024)(_key)


def _ordered_parts(text: str) -> tuple[_Part, ...]:
    """Return the sort key of a version's parts between dots: numbers by value, then words by characters.

    Digits are never converted to an integer, because a number can have any length.
    """
    return tuple((0, len(part), part) if part.isdigit() else (1, 0, part) for part in text.split("."))


def _converted(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Return the compiled call `number(s)` or `version(s)`; None if the argument is invalid."""
    node, op, span = checker.check(call.arguments[0]), Op(call.function.dotted), call.arguments[0].span
    if node is None:
        return None
    constant_version = op == Op.VERSION and node.op == Op.CONSTANT
    if node.type.kind is not Kind.STRING:
        variant = "version" if constant_version else ""
        hint = suggestions.to_string(node) if node.type.kind is Kind.LIST else None
        return checker.report("E0311", span, variant, type=node.type, name=call.function.dotted, help=hint)
    if not constant_version:
        result = VERSION if op == Op.VERSION else NUMBER
        return make(op, (node,), result.over(node.type).filled(Gap.INPUT))
    found = canonical(str(node.data))
    if found is None:
        return checker.report("E0312", span, "version", found=shown(str(node.data)))
    return constant(found, VERSION)


def _text_test(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Return the compiled call of `starts_with`, `ends_with` or `contains`; report errors."""
    nodes = strings(checker, call)
    if nodes is None:
        return None
    return make(call.function.dotted, nodes, BOOL.over(*(node.type for node in nodes)))


def _glob(checker: Checker, call: Call, unit: Unit | None) -> Typed | None:
    node = _text_test(checker, call, unit)
    if node is None or not constant_text(checker, call, 1, node.args[1], must=False):
        return None
    if max(arg.length.most for arg in node.args) <= MAX_TEXT:
        return node
    return make(Op.GLOB, node.args, node.type.at_least(Gap.OWN))


def _concat(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = strings(checker, call)
    if nodes is None:
        return None
    least = sum(node.length.least for node in nodes)
    if least > MAX_TEXT:
        return checker.report("E0313", call.span, number=least, limit=MAX_TEXT)
    result = STRING.over(*(node.type for node in nodes))
    most = sum(node.length.most for node in nodes)
    return make(Op.CONCAT, nodes, result if most <= MAX_TEXT else result.at_least(Gap.OWN))


def _split(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    nodes = strings(checker, call)
    if nodes is None:
        return None
    if nodes[0].type.shape is not Shape.SCALAR:
        return checker.report("E0308", call.arguments[0].span)
    if not constant_text(checker, call, 1, nodes[1]):
        return None
    result = list_of(STRING).filled(nodes[0].type.gap)
    parts = nodes[0].length.most // nodes[1].length.most + 1
    return make(Op.SPLIT, nodes, result if parts <= MAX_PARTS else result.at_least(Gap.OWN))


STRINGS: Final[Mapping[str, Function]] = {
    "number": Function(
        _converted,
        1,
        1,
        "s",
        "`s` as a decimal number; missing if `s` is not a number",
        example='number(node.labels["cores"]) > 10',
    ),
    "version": Function(
        _converted,
        1,
        1,
        "s",
        "`s` as a version, as in `1.28` or `v1.29.0-rc.1`; missing if `s` is not a version. A suffix makes it older: "
        "`5.15.0-91` is older than `5.15`, but not than `5.15-0`",
        example='version(node.labels["driver"]) >= version("535.104")',
    ),
    "starts_with": Function(
        _text_test, 2, 2, "s, p", "true if `s` starts with `p`", example='starts_with(node.name, "edge-")'
    ),
    "ends_with": Function(_text_test, 2, 2, "s, p", "true if `s` ends with `p`", example='ends_with(pod.name, "-0")'),
    "contains": Function(_text_test, 2, 2, "s, p", "true if `s` contains `p`", example='contains(pod.name, "nginx")'),
    "glob": Function(
        _glob,
        2,
        2,
        "s, p",
        "true if all of `s` matches the pattern `p`: `*` is any characters, `?` is one character",
        example='glob(node.labels["gpu"], "a100-*")',
    ),
    "concat": Function(
        _concat,
        1,
        None,
        "a, …",
        "the strings joined; missing if one of them is missing",
        example='node.labels[concat("team-", pod.namespace)] == "yes"',
    ),
    "split": Function(
        _split,
        2,
        2,
        "s, sep",
        "list of the parts of `s` between the separators `sep`, for the right side of `in`",
        example='node.labels["gpu"] in split(pod.annotations["gpus"], "|")',
    ),
}
