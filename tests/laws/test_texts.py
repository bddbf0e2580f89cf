"""Any text compiles, or says what is wrong at a place inside it, and soon: any characters, tokens, changed programs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysched.language import (
    Compiled,
    Diagnostic,
    Environment,
    Want,
    check_name,
    code_table,
    compile_expression,
    format_text,
    load_grammar,
    render,
)
from policysched.language.checking.compile import compile_cases
from policysched.language.syntax.terminals import TERMINALS
from tests.language.programs import compile_lets
from tests.laws.evaluating import METRICS
from tests.laws.examples import examples
from tests.strategies import expressions

pytestmark = pytest.mark.usefixtures("others_apart")
MANY = examples(120)
LONGEST = 0.2
"""Units: seconds of the processor."""
ALPHABET = st.text(
    st.one_of(
        st.sampled_from('node.labels["x"] == <>!&|?%()[]-+*/→#\n\0\u202e 3Ginotin,:\'=AB“”’‘«»＂'), st.characters()
    )
)
WORDS = (
    "node.name", "not", "and", "or", "in", "(", ")", "[", "]", ",", "==", "<", "??", "-", "+", "/", "*", "3", "4Gi",
    "80%", '"a"', "'", '"', "=", "→", "else", "missing", "has(", "sum(", "by", "pod.labels", ".", "X", "5min", "x",
    "node.pods.count(", "node.pods", "peer", "peer.name", "metrics.load", "metrics", "clock(", '"22:00"', "22:00",
    "version(", '"v1.2"', "normalize(", "node.zone", "by node.zone", "true", "hour()", "1e9", "9Ei", "\\", '"\\"',
)  # fmt: skip

PIECES = st.lists(st.sampled_from(WORDS), max_size=25)
PHASES = st.sampled_from(("filter", "score", "pod", "let"))
STARTS = st.sampled_from(("expr", "case"))


load_grammar()


def _compile(text: str, start: str, phase: str) -> Compiled:
    environment = Environment(phase, metrics=METRICS)  # type: ignore[arg-type]
    if start == "case":
        return compile_cases([text], environment)
    want = {"score": Want.NUMBER, "let": Want.ANY}.get(phase, Want.CONDITION)
    return compile_expression(text, environment, want)


def _is_soon(text: str, start: str, phase: str) -> bool:
    """Whether a text compiles in time; once more if not, in case the test's own garbage was collected meanwhile."""
    for _ in range(2):
        begin = time.process_time()
        _compile(text, start, phase)
        if time.process_time() - begin < LONGEST:
            return True
    return False


def _judge(text: str, start: str, phase: str = "filter") -> None:
    assert _is_soon(text, start, phase)
    result = _compile(text, start, phase)
    assert (result.program is None) == bool(result.errors)
    for item in result.diagnostics:
        _inside(item, text)
    formatted = format_text(text, start)
    assert isinstance(formatted, str) or formatted in result.diagnostics or start == "case"


def _inside(item: Diagnostic, text: str) -> None:
    lines = text.split("\n")
    assert item.code in code_table()
    assert 1 <= item.line <= len(lines)
    assert 1 <= item.column <= item.end_column <= len(lines[item.line - 1]) + 1
    assert not (item.column == item.end_column and item.column <= len(lines[item.line - 1].rstrip()))
    assert not any(f" {name} " in f" {item.message} " for name in set(TERMINALS) - {"IN", "OR", "AND", "NOT", "BY"})
    assert "Token(" not in item.message
    assert render(item, text, "p").startswith(item.severity)


@MANY
@given(ALPHABET, STARTS, PHASES)
def test_any_text_compiles_or_says_why_not(text: str, start: str, phase: str) -> None:
    _judge(text, start, phase)


@MANY
@given(PIECES, st.sampled_from((" ", "")), STARTS, PHASES)
def test_any_tokens_compile_or_say_why_not(pieces: list[str], space: str, start: str, phase: str) -> None:
    _judge(space.join(pieces), start, phase)


@MANY
@given(
    expressions(2), st.integers(0), st.integers(0, 6), st.one_of(st.text(max_size=2), st.sampled_from(WORDS)), PHASES
)
def test_any_change_of_a_text_compiles_or_says_why_not(text: str, place: int, size: int, new: str, phase: str) -> None:
    start = place % (len(text) + 1)
    _judge(text[:start] + new + text[start + size :], "expr", phase)


@MANY
@given(st.lists(st.tuples(st.one_of(st.sampled_from("abc"), st.text(max_size=5)), expressions(1)), max_size=5))
def test_any_names_compile_or_say_why_not(lets: list[tuple[str, str]]) -> None:
    known = {name for name, _ in lets}
    changed = [(name, text.replace("pod.name", sorted(known)[0])) for name, text in lets]
    compiled, environment = compile_lets(changed, Environment(metrics=METRICS))
    for one, (name, text) in zip(compiled, changed, strict=True):
        for item in one.name_diagnostics:
            _inside(item, name)
        for item in one.value.diagnostics:
            _inside(item, text)
        assert (name in environment.lets) or check_name(name) is not None
