"""Texts in programs: the tables that they fill by code, and the codes that they do without."""

from __future__ import annotations

import gc
import weakref

import pytest

from policysched.language import interpret
from policysched.language.evaluation.columns import Truth, run_program
from policysched.language.evaluation.frames import FrameStrings
from tests.language.frames import Interner, TableFrame, at_row
from tests.language.programs import program


def test_tables_follow_a_growing_interner() -> None:
    strings = Interner()
    texts = [
        "number(node.name)",
        'glob(node.name, "1*")',
        'concat("<", node.name, ">")',
        "concat(node.name, node.zone)",
        'node.name in ["10", "20", "30", "40", "50"]',
        "starts_with(node.name, node.zone)",
    ]
    for size in (1, 3, 40, 200):
        rows = [{"node.name": str(i), "node.zone": str(i % 7)} for i in range(size)]
        frame = TableFrame(rows, strings=FrameStrings(strings))
        for text in texts:
            compiled = program(text)
            values = run_program(compiled, frame)
            for row in range(size):
                assert at_row(compiled, values, frame, row) == interpret(compiled, frame.at(row))


def test_what_rules_make_of_strings_goes_with_the_frame() -> None:
    strings = Interner()
    for number in range(3):
        scalars = {"pod.name": f"p{number}"}
        frame = TableFrame([{"node.name": "n", "node.zone": "v1"}, {}], scalars, strings=FrameStrings(strings))
        for text in (
            "concat(pod.name, concat(pod.name, node.name))",
            "concat(node.name, node.zone)",
            "version(node.zone)",
            "if(node.ready, pod.name, node.name)",
            "node.zone ?? pod.name",
            "pod.name",
            'concat(pod.name, node.name) in ["1", "2", "3", "4", "5", "6", "7", "8", "9"]',
            "number(concat(node.name, pod.name))",
        ):
            compiled = program(text)
            values = run_program(compiled, frame)
            assert [at_row(compiled, values, frame, row) for row in range(2)] == [
                interpret(compiled, frame.at(row)) for row in range(2)
            ]
    assert [strings.text(code) for code in range(len(strings))] == ["n", "", "v1"]


def test_strings_that_the_cluster_learns_of_while_a_frame_lasts_stay_equal() -> None:
    frame = TableFrame([{"node.name": "b", "node.zone": "ab"}])
    assert run_program(program('concat("a", node.name) == "ab"'), frame).true.tolist() == [True]  # type: ignore[union-attr]
    assert run_program(program('concat("a", node.name) == node.zone'), frame).true.tolist() == [True]  # type: ignore[union-attr]


def test_tables_let_go_of_an_interner() -> None:
    strings = Interner()
    gone = weakref.ref(strings)
    frame = TableFrame([{"node.name": "n"}], strings=FrameStrings(strings))
    for text in ('concat("a", node.name)', "concat(node.name, node.zone)", 'node.name in ["1", "2", "3", "4"]'):
        run_program(program(text), frame)
    del strings, frame
    gc.collect()
    assert gone() is None


def test_many_different_constants_do_not_pile_up() -> None:
    strings = Interner()
    for number in range(600):
        frame = TableFrame([{"node.name": "x1"}], {"pod.name": f"x{number}"}, FrameStrings(strings))
        found = run_program(program("starts_with(node.name, pod.name)"), frame)
        assert isinstance(found, Truth)
        assert found.true.tolist() == [number == 1]  # type: ignore[union-attr]


@pytest.mark.parametrize("known", [(), ("a",), ("b",), ("a", "b")])
@pytest.mark.parametrize(("left", "right"), [("a", "b"), ("a", "a"), ("b", "a")])
def test_texts_that_no_column_holds_are_still_told_apart(known: tuple[str, ...], left: str, right: str) -> None:
    frame = TableFrame([{}], {"pod.name": left, "pod.namespace": right})
    for text in known:
        frame.strings.base.code(text)  # type: ignore[attr-defined]
    assert run_program(program("pod.name == pod.namespace"), frame) == Truth(left == right, False)
    assert run_program(program("pod.name != pod.namespace"), frame) == Truth(left != right, False)
    assert run_program(program(f'pod.name != "{right}"'), frame) == Truth(left != right, False)
    assert run_program(
        program(f'"{left}" in [pod.namespace]'.replace("[pod.namespace]", 'split(pod.namespace, ",")')), frame
    ) == Truth(left == right, False)


def test_what_is_only_compared_gets_no_code() -> None:
    strings = Interner()
    texts = (
        'node.name == "absent"',
        '"absent" != node.name',
        "node.name == pod.name",
        "node.zone != pod.name",
        'node.name in ["absent"]',
        'node.name in split(pod.name, ",")',
        'version(node.zone) == version("9.9.9")',
    )
    for text in texts:
        for number in range(5):
            frame = TableFrame([{"node.name": "n"}, {}], {"pod.name": f"p{number},q"}, FrameStrings(strings))
            value = run_program(program(text), frame)
            assert [at_row(program(text), value, frame, row) for row in (0, 1)] == ["!=" in text] * 2
    assert [strings.text(code) for code in range(len(strings))] == ["n", ""]
