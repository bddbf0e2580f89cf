"""What is read of the answers of extenders, and how much work their size makes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policysched.extenders import wire
from policysched.framework.extender import ExtenderError
from tests.work import calls

ASKED = [f"n{number}" for number in range(20)]


def answer(images: int) -> bytes:
    """Whole nodes, each with images."""
    status = {"images": [{"names": [f"registry.example/{number}"], "sizeBytes": number} for number in range(images)]}
    return json.dumps({"Nodes": {"items": [{"metadata": {"name": one}, "status": status} for one in ASKED]}}).encode()


def read(body: bytes) -> frozenset[str]:
    return frozenset(wire.read_filter(body, ASKED, by_name=False, extender="e").nodes)


def test_whole_nodes_are_read_for_their_names_alone() -> None:
    assert read(answer(500)) == frozenset(ASKED)
    small, large = answer(0), answer(500)
    assert calls(lambda: read(small)) == calls(lambda: read(large))


def test_names_of_fields_may_be_in_any_case() -> None:
    body = b'{"nodes": {"Items": [{"Metadata": {"NAME": "n1"}}, {"metadata": {"name": "n2"}}, {"METADATA": null}]}}'
    with pytest.raises(ExtenderError, match='claims a filtered node ""'):
        read(body)
    assert read(body.replace(b', {"METADATA": null}', b"")) == {"n1", "n2"}


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(
    "given",
    [
        {"Nodes": {"items": [{"metadata": {"name": "n1"}}]}, "NodeNames": None, "Error": ""},
        {"NodeNames": ["n2", "n2"], "FailedNodes": {"n1": "w" * 5000}},
        {"NodeNames": [], "FailedAndUnresolvableNodes": {"n1": "never", "n3": "never"}, "FailedNodes": None},
        {"Nodes": {"metadata": {}, "items": []}},
        {"Nodes": {"items": [{"metadata": {"name": ""}}]}},
        {"Nodes": {"items": [{"metadata": {"name": "n99"}}]}},
        {"NodeNames": ["n1"], "Error": "not today"},
        {"NodeNames": ["n1", 2]},
        {"NodeNames": ["n1"], "FailedNodes": {"n2": 3}},
    ],
)
def test_an_answer_says_the_same_however_its_fields_are_written(given: Any, by_name: bool) -> None:
    told = []
    for fields in (given, {name.lower(): value for name, value in given.items()}):
        try:
            told.append(repr(wire.read_filter(json.dumps(fields).encode(), ASKED, by_name=by_name, extender="e")))
        except ExtenderError as error:
            told.append(str(error))
    assert told[0] == told[1]


def test_an_answer_of_the_usual_form_is_read_in_one_go() -> None:
    usual = answer(10)
    assert 4 * calls(lambda: read(usual)) < calls(lambda: read(usual.replace(b'"Nodes"', b'"nodes"')))


@pytest.mark.parametrize("body", [b"{}", b'{"Nodes": null}', b'{"Nodes": {}}', b'{"Nodes": {"items": null}}'])
def test_no_nodes_are_none(body: bytes) -> None:
    assert read(body) == frozenset()


def test_answer_of_far_too_many_nodes_is_refused_before_they_are_looked_at() -> None:
    body = b'{"Nodes": {"items": [' + b",".join([b"{}"] * 100_000) + b"]}}"
    with pytest.raises(ExtenderError, match=r"Nodes\.items: 100000 are more than 80"):
        read(body)


def test_scores_of_far_too_many_nodes_are_refused() -> None:
    with pytest.raises(ExtenderError, match="the answer: 100000 are more than 80"):
        wire.read_scores(b"[" + b",".join([b"{}"] * 100_000) + b"]", len(ASKED))
    assert wire.read_scores(b'[{"host": "n1", "Score": 3}, {"Host": "n1", "score": 4}]', 2) == {"n1": 7}
