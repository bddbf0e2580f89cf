"""No regular expression of the package takes more than about linear time, whatever text it is given.

Every pattern in the source is parsed, and texts are made of it that repeat what it repeats, with something in front
that leads there and something behind that spoils the match. A pattern that goes back over a text for each of its
characters takes hundreds of times as long as one that does not, so that no clock needs to be exact.
"""

from __future__ import annotations

import ast
import importlib
import re
import re._constants as kinds  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from tools.documents.markdown import ROOT

PACKAGE = ROOT / "policysched"
FUNCTIONS = {"compile", "match", "fullmatch", "search", "sub", "split", "findall", "finditer"}
USE = re.compile(rf"(?<![\w.])([A-Za-z_]\w*)\.({'|'.join(sorted(FUNCTIONS, key=len, reverse=True))})\b")
"""A method of a name, longer methods first."""
ALL_OVER = {"sub", "split", "findall", "finditer", "search"}
REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
TIMES = (23, 30, 300, 1000, 10_000)
"""How often a part is repeated: the fewer times are for what would never end with more."""
SLOW = 0.1
"""The longest text takes a linear pattern 1 ms, a quadratic one 0.5 s and more. Units: seconds of the processor."""
SPOILERS = ("", "!", "\0", "\n", "é", '"')
"""What stands behind the repeated part."""


@dataclass(frozen=True)
class Found:
    """A pattern in the source and how it is used: at the start of a text where nothing calls it by name."""

    place: str
    pattern: str
    flags: int
    methods: frozenset[str]


def _compiled(path: Path, call: ast.Call, name: str) -> re.Pattern[str] | None:
    """The pattern of a call: what the module holds under the name, or a text written out in the call."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    held = getattr(module, name, None) if name else None
    if held is None:
        first = call.args[0]
        return re.compile(str(first.value), _flags(call)) if isinstance(first, ast.Constant) else None
    if isinstance(held.pattern, bytes):
        return re.compile(held.pattern.decode("latin-1"), held.flags | re.ASCII)
    return cast("re.Pattern[str]", held)


def _flags(call: ast.Call) -> int:
    found = 0
    for node in ast.walk(call):
        if isinstance(node, ast.Attribute) and node.attr.isupper() and hasattr(re, node.attr):
            found |= int(getattr(re, node.attr))
    return found


def _uses(text: str) -> frozenset[tuple[str, str]]:
    """Names in a source text with the methods that are called on them."""
    return frozenset(USE.findall(text))


def patterns() -> Iterator[Found]:
    texts = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    uses = {path: _uses(text) for path, text in texts.items()}
    anywhere = frozenset().union(*uses.values())
    for path in (path for path, used in uses.items() if any(name == "re" for name, _ in used)):
        tree = ast.parse(texts[path])
        assigned = {
            id(node.value): getattr(target, "id", "")
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        }
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            function = call.func
            if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
                continue
            if function.value.id != "re" or function.attr not in FUNCTIONS:
                continue
            name = assigned.get(id(call), "")
            made = _compiled(path, call, name)
            if made is None:
                continue
            own, others = ({method for used, method in found if used == name} for found in (uses[path], anywhere))
            methods = {function.attr} if function.attr != "compile" else own or others or {"match", "fullmatch"}
            place = f"{path.relative_to(PACKAGE)}:{name or call.lineno}"
            yield Found(place, made.pattern, made.flags & ~re.UNICODE, frozenset(methods))


PATTERNS = list(patterns())
CATEGORIES = {"CATEGORY_DIGIT": ["1"], "CATEGORY_WORD": ["a", "1"], "CATEGORY_SPACE": [" "]}
MADE_ELSEWHERE = {"sandbox/api/server.py", "apimachinery/schema.py"}
"""Where patterns come from who runs the sandbox: tests, and the schemas of the resources that it serves."""
OWN_TEXTS = {"apimachinery/resources.py:_FIELD"}
"""What reads the package's own data and nothing else."""


def test_the_source_has_patterns_that_are_known() -> None:
    assert len(PATTERNS) > 50
    calls = [
        path
        for path in PACKAGE.rglob("*.py")
        if str(path.relative_to(PACKAGE)) not in MADE_ELSEWHERE
        for _ in re.findall(rf"\bre\.(?:{'|'.join(FUNCTIONS)})\(", path.read_text("utf-8"))
    ]
    assert len(calls) == sum(one.place.rpartition(":")[0] not in MADE_ELSEWHERE for one in PATTERNS)


def _of_class(items: Any) -> list[str]:
    """Some characters of a class, and some that are in none when it is negated."""
    found = []
    for kind, value in items:
        if kind is kinds.LITERAL:
            found.append(chr(value))
        elif kind is kinds.RANGE:
            found += [chr(value[0]), chr(value[1])]
        elif kind is kinds.CATEGORY:
            found += {"CATEGORY_DIGIT": ["1"], "CATEGORY_WORD": ["a", "1"], "CATEGORY_SPACE": [" "]}.get(
                value.name, ["x"]
            )
    if (kinds.NEGATE, None) in items:
        return [one for one in "a1 -.:" if one not in found]
    return found


def samples(tree: Any) -> list[str]:
    """Some texts that a part of a pattern matches."""
    texts = [""]
    for kind, value in tree:
        options = _options(kind, value)
        texts = [before + after for before in texts for after in options][:6]
    return texts


def _repeat(value: Any) -> list[str]:
    least, _, inner = value
    return [text * max(least, 1) for text in samples(inner)] + ([""] if least == 0 else [])


_OPTIONS: dict[Any, Callable[[Any], list[str]]] = {
    kinds.LITERAL: lambda value: [chr(value)],
    kinds.NOT_LITERAL: lambda value: ["b" if value == ord("a") else "a"],
    kinds.ANY: lambda _: ["a"],
    kinds.IN: lambda value: _of_class(value)[:4],
    kinds.BRANCH: lambda value: [text for branch in value[1] for text in samples(branch)[:2]][:8],
    kinds.SUBPATTERN: lambda value: samples(value[3]),
    kinds.ATOMIC_GROUP: samples,
    **dict.fromkeys(REPEATS, _repeat),
}


def _options(kind: Any, value: Any) -> list[str]:
    """Some texts that one element of a pattern matches."""
    return _OPTIONS[kind](value) if kind in _OPTIONS else [""]


def repeated(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """What a pattern repeats without a limit, each with a text that leads there."""
    for kind, value in tree:
        inner: list[Any] = []
        if kind in REPEATS:
            inner = [value[2]]
            if value[1] > TIMES[-1]:
                yield from ((before, text) for text in samples(value[2]) if text)
        elif kind is kinds.BRANCH:
            inner = list(value[1])
        elif kind is kinds.SUBPATTERN:
            inner = [value[3]]
        elif kind is kinds.ATOMIC_GROUP:
            inner = [value]
        for part in inner:
            yield from repeated(part, before)
        before += _options(kind, value)[0]


def pumps(pattern: str, flags: int) -> set[tuple[str, str]]:
    """What to repeat, with what stands in front of it."""
    tree = parser.parse(pattern, flags)
    found = set(repeated(tree))
    whole = {("", text) for text in samples(tree) if text}
    apart = {("", first + second) for _, first in found for _, second in found if first != second}
    # a part that begins again and again, and never ends
    begun = {("", before + text) for before, text in found}
    return found | {("", text) for _, text in found} | whole | set(sorted(apart)[:60]) | begun


def seconds(run: Callable[[str], object], text: str) -> float:
    begin = time.process_time()
    run(text)
    return time.process_time() - begin


def worst(found: Found) -> tuple[float, str]:
    """The slowest of all texts that are tried: its time and what it is."""
    compiled = re.compile(found.pattern, found.flags)
    runs: list[Callable[[str], object]] = [
        getattr(compiled, method) for method in ("match", "fullmatch") if method in found.methods
    ]
    if found.methods & ALL_OVER:
        runs.append(lambda text: compiled.sub("", text))
    result = (0.0, "")
    for times in TIMES:
        for before, text in sorted(pumps(found.pattern, found.flags)):
            for spoiler in SPOILERS:
                whole = before + text * times + spoiler
                for run in runs:
                    took = seconds(run, whole)
                    if took > SLOW:
                        took = min(took, seconds(run, whole))
                    result = max(result, (took, f"{before!r} + {text!r} * n + {spoiler!r}"))
                    if took > SLOW:
                        return result
    return result


@pytest.mark.parametrize("found", [one for one in PATTERNS if one.place not in OWN_TEXTS], ids=lambda one: one.place)
def test_a_pattern_takes_linear_time(found: Found) -> None:
    took, text = worst(found)
    assert took < SLOW, text


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(0*)([0-9]*)(?:\.[0-9]*)?([a-z]*[0-9]*)", "fullmatch"),
        (r"(a+)+b", "match"),
        (r"[ \t]*\n", "sub"),
        (r"x[0-9]+m", "search"),
        (r"\{.*:\s+.*\[", "search"),
        (r"(?:a|ab|b)*c", "match"),
        (r"\s+$", "sub"),
    ],
)
def test_a_pattern_that_goes_back_is_found(pattern: str, method: str) -> None:
    took, text = worst(Found("", pattern, 0, frozenset({method})))
    assert (took > SLOW) == (pattern != r"x[0-9]+m"), text
