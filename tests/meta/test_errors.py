"""Every code has an explanation, whose example gets that code and whose correction gets none."""

from __future__ import annotations

import pytest

from policysched.app.checking.explain import LONGEST, as_policy, explain, explain_all
from policysched.app.checking.schema import CODE as SHAPE_CODE
from policysched.app.checking.schema import faults
from policysched.language import code_table, message_table
from tools.documents.markdown import LANGUAGE, anchors, links
from tools.reference.errors import PAGE, WIDTH


def test_every_code_is_explained_and_nothing_else() -> None:
    assert set(message_table()) == {*code_table(), SHAPE_CODE}
    assert list(message_table()) == sorted(message_table())
    assert {code.lower() for code in message_table()} <= anchors(PAGE)


def test_reference_leads_to_the_explanations() -> None:
    assert "errors.md" in links(LANGUAGE)


@pytest.mark.parametrize("code", message_table())
def test_explanations_are_whole_sentences(code: str) -> None:
    one = message_table()[code]
    for prose in (one.meaning, one.reason):
        assert prose.endswith(".")
        assert prose[0].isupper() or prose[0] == "`"
        assert prose == " ".join(prose.split())


@pytest.mark.parametrize("code", message_table())
def test_an_example_gets_its_code_alone(code: str) -> None:
    said = list(explain(code).says())
    assert said
    assert {text.partition("]")[0].partition("[")[2] for text in said} == {code}


@pytest.mark.parametrize("code", message_table())
def test_what_is_written_instead_gets_none(code: str) -> None:
    one = explain(code)
    fixed = type(one)(one.code, one.title, one.meaning, one.reason, one.fix, one.fix, one.nodes)
    assert list(fixed.says()) == []


@pytest.mark.parametrize("code", [code for code in message_table() if code != SHAPE_CODE])
def test_examples_have_the_shape_of_a_policy(code: str) -> None:
    assert list(faults(as_policy(message_table()[code].example))) == []


def test_lines_of_the_document_are_not_too_long() -> None:
    text = PAGE.read_text("utf-8")
    assert max(len(line) for line in text.splitlines() if not line.startswith(("error[", "warning["))) <= WIDTH
    assert max(len(line) for one in explain_all() for line in one.fix.splitlines()) <= LONGEST
