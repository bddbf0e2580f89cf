"""What is read of the answers of extenders, and how much work their size makes."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest

from policysched.extenders import wire
from policysched.framework.extender import ExtenderError, NamedVictims
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


@pytest.mark.parametrize(
    "body",
    [b"{}", b"null", b"{}\n{}", b"null 3", b'{"Nodes": null}', b'{"Nodes": {}}', b'{"Nodes": {"items": null}}'],
)
def test_no_nodes_are_none(body: bytes) -> None:
    assert read(body) == frozenset()


@pytest.mark.parametrize("reason", [rb"\ud83d", rb"\\\ud83dx", b"trunc \xe2\x82", rb"\uDE00\ud83d", rb"\ud83d\ude00"])
@pytest.mark.parametrize("by_name", [False, True])
def test_halves_of_characters_in_a_reason_spoil_no_answer(reason: bytes, by_name: bool) -> None:
    body = b'{"NodeNames": ["n2"], "Nodes": {"items": [{"metadata": {"name": "n2"}}]}, "FailedNodes": {"n1": "%b"}}'
    found = wire.read_filter(body % reason, ASKED, by_name=by_name, extender="e")
    assert found.nodes == {"n2"}
    assert found.failed["n1"].encode()


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (rb"\\ud800\udc00", "\\ud800\ufffd"),  # a backslash, then text, then a half
        (rb"\\\ud800\udc00", "\\\U00010000"),
        (rb"\ud800\ud800\udc00\udc00", "\ufffd\U00010000\ufffd"),
        (rb"\udc00\ud800", "\ufffd\ufffd"),
        (rb"\ud800\u0041\n\\\uDFFF", "\ufffdA\n\\\ufffd"),
        (rb"a\ud83d\ude00b", "a\U0001f600b"),
    ],
)
def test_halves_of_characters_are_read_as_go_reads_them(written: bytes, read_as: str) -> None:
    body = b'{"NodeNames": [], "FailedNodes": {"n1": "%b"}}' % written
    assert wire.read_filter(body, ASKED, by_name=True, extender="e").failed["n1"] == read_as


def test_answer_of_far_too_many_nodes_is_refused_before_they_are_looked_at() -> None:
    body = b'{"Nodes": {"items": [' + b",".join([b"{}"] * 100_000) + b"]}}"
    with pytest.raises(ExtenderError, match=r"Nodes\.items: 100000 entries, more than the limit of 80"):
        read(body)


@pytest.mark.parametrize("name", ["FailedNodes", "failedAndUnresolvableNodes"])
def test_reasons_about_far_too_many_nodes_are_refused(name: str) -> None:
    with pytest.raises(ExtenderError, match=f"(?i){name}: 1000 entries, more than the limit of 80"):
        read(json.dumps({"NodeNames": ["n1"], name: {f"m{number}": "no" for number in range(1000)}}).encode())


def test_fields_that_nobody_asked_for_are_not_read() -> None:
    def work(fields: int) -> int:
        body = json.dumps({"nodes": {"items": []}} | {f"f{number}": [[]] * number for number in range(fields)}).encode()
        return calls(lambda: read(body))

    assert work(200) < work(20) + 2 * 200
    with pytest.raises(ExtenderError, match="the answer: 300 entries, more than the limit of 256"):
        work(299)


def victims(nodes: int, pods: int) -> bytes:
    given = {"pods": [{"UID": f"u{number}"} for number in range(pods)], "NumPDBViolations": 1}
    return json.dumps({"NodeNameToMetaVictims": {f"n{number}": given for number in range(nodes)}}).encode()


def test_victims_are_read_whatever_the_case_of_their_fields() -> None:
    found = wire.read_victims(victims(2, 3), 2, 1)
    assert found == {f"n{number}": NamedVictims(("u0", "u1", "u2"), 1) for number in range(2)}
    odd = b'{"nodeNameToMetaVictims": {"n1": null, "n2": {"Pods": null}, "n3": {"PODS": [{}]}}}'
    found = wire.read_victims(odd, 3, 3)
    assert found == {"n1": NamedVictims(()), "n2": NamedVictims(()), "n3": NamedVictims(("",))}
    assert wire.read_victims(b'{"NodeNameToMetaVictims": null}', 1, 1) == {}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (victims(81, 1), "NodeNameToMetaVictims: 81 entries, more than the limit of 80"),
        (victims(1, 1105), "Pods: 1105 entries, more than the limit of 1104"),
        (victims(2, 600), "Pods: 600 entries, more than the limit of 504"),
        (b'{"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": 7}]}}}', "UID: expected a string, got a number"),
        (b'{"NodeNameToMetaVictims": {"n1": {"Pods": {}}}}', "Pods: expected a list, got an object"),
        (b'{"NodeNameToMetaVictims": {"n1": []}}', "victims: expected an object, got a list"),
        (b'{"NodeNameToMetaVictims": []}', "NodeNameToMetaVictims: expected an object, got a list"),
        (b"3", "the answer: expected an object, got a number"),
        (b"{", "the answer is not JSON"),
    ],
)
def test_answer_about_victims_that_cannot_be_used_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(ExtenderError, match=why):
        wire.read_victims(body, 20, 20)


def test_scores_of_far_too_many_nodes_are_refused() -> None:
    with pytest.raises(ExtenderError, match="the answer: 100000 entries, more than the limit of 80"):
        wire.read_scores(b"[" + b",".join([b"{}"] * 100_000) + b"]", len(ASKED))
    assert wire.read_scores(b'[{"host": "n1", "Score": 3}, {"Host": "n1", "score": 4}]', 2) == {"n1": 7}


MANY = 2 << 20


@pytest.mark.parametrize(
    "body",
    [
        b'{"Error": [%b[]]}' % (b"[]," * MANY),
        b'{"error": [%b[]]}' % (b"[]," * MANY),
        b'{"NodeNames": [%b[]]}' % (b"[]," * MANY),
        b'{"FailedNodes": {"n1": [%b[]]}}' % (b"[]," * MANY),
        b'{"failedNodes": {%b"n": ""}}' % b"".join(b'"%d":"",' % number for number in range(MANY // 4)),
        b'{"FailedNodes": {%b"n": ""}}' % b"".join(b'"%d":"",' % number for number in range(MANY // 4)),
        b'{%b"n": ""}' % b"".join(b'"%d":"",' % number for number in range(MANY // 4)),
        b'{"Nodes": {"items": [%b{}]}}' % (b"{}," * MANY),
        b'{"Nodes": {%b"n": ""}}' % b"".join(b'"%d":"",' % number for number in range(MANY // 4)),
        b'[{"Host": "n1", "Score": [%b[]]}]' % (b"[]," * MANY),
        b"[%b{}]" % (b"{}," * MANY),
        b"[%b[]]" % (b"[]," * MANY),
        b'[{%b"n": 0}]' % b"".join(b'"%d":0,' % number for number in range(MANY // 4)),
        b'{"NodeNameToMetaVictims": {%b"n": {}}}' % b"".join(b'"%d":{},' % number for number in range(MANY // 4)),
        b'{"NodeNameToMetaVictims": {"n1": {"Pods": [%b{}]}}}' % (b"{}," * MANY),
        b'{"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": [%b[]]}]}}}' % (b"[]," * MANY),
    ],
    ids=lambda body: bytes(body[:24]).decode(),
)
def test_what_an_answer_has_too_much_of_is_never_made(body: bytes) -> None:
    """The largest answers are some 6 MiB; as objects of Python they were 200 to 600, and 0.3 to 1.6 s of one piece."""
    for read_answer in (
        lambda: wire.read_filter(body, ASKED, by_name=True, extender="e"),
        lambda: wire.read_filter(body, ASKED, by_name=False, extender="e"),
        lambda: wire.read_scores(body, len(ASKED)),
        lambda: wire.read_victims(body, len(ASKED), len(ASKED)),
        lambda: wire.read_binding(body),
    ):
        tracemalloc.start()
        try:
            with suppress(ExtenderError):
                read_answer()
            assert tracemalloc.get_traced_memory()[1] < 3 * len(body)
        finally:
            tracemalloc.stop()


def test_victims_of_the_usual_form_are_read_in_one_go() -> None:
    usual = victims(20, 20).replace(b"pods", b"Pods")
    assert 10 * calls(lambda: wire.read_victims(usual, 20, 100)) < calls(
        lambda: wire.read_victims(usual.replace(b"Pods", b"pods"), 20, 100)
    )


def test_counted_answers_say_what_short_ones_say(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [answer(1), answer(1).replace(b"Nodes", b"nodes"), answer(1).replace(b"name", b"Name"), victims(3, 2)]
    answers += [
        b'{"NodeNames": ["n1", "n2"], "FailedNodes": {"n3": "no", "n4": "never"}}',
        b'{"nodeNames": ["n1"], "failedandunresolvablenodes": {"n3": "no"}, "other": [1, 2]}',
        b'[{"Host": "n1", "Score": 3}, {"Host": "n2", "Score": -4}]',
        b'[{"host": "n1", "Score": 3}, {"Host": "n2", "score": 9223372036854775807}]',
        b'{"NodeNames": [1]}',
        b'{"FailedNodes": {"n1": 2}}',
        b'[{"Host": 3}]',
        b'{"NodeNameToMetaVictims": {"n1": {"Pods": {}}}}',
        b"{",
    ]

    def told() -> list[str]:
        found = []
        for body in answers:
            for read_answer in (
                lambda body=body: wire.read_filter(body, ASKED, by_name=True, extender="e"),
                lambda body=body: wire.read_filter(body, ASKED, by_name=False, extender="e"),
                lambda body=body: sorted(wire.read_scores(body, len(ASKED)).items()),
                lambda body=body: sorted(wire.read_victims(body, 20, 20).items()),
            ):
                try:
                    found.append(repr(read_answer()))
                except ExtenderError as error:
                    found.append(str(error))
        return found

    short = told()
    monkeypatch.setattr(wire, "FEW", 0)
    assert told() == short
