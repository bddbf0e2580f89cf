from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from policysched.app import fmt
from policysched.app.files import read
from policysched.app.fmt import format_source
from policysched.app.fmt_files import Outcome, format_files
from policysched.errors import PolicyschedError, UsageError
from policysched.language import Diagnostic, format_text
from tests import strategies

HEAD = "apiVersion: policysched.io/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n"
LONG = " && ".join(f'node.labels["{letter * 20}"]=="a"' for letter in "abc")
CANONICAL = [f'node.labels["{letter * 20}"] == "a"' for letter in "abc"]


def _formatted(spec: str) -> str:
    made = format_source(HEAD + spec, "p.yaml")
    assert made.findings == ()
    assert made.text.startswith(HEAD)
    return made.text.removeprefix(HEAD)


SCALARS = [
    # plain
    ("a==1", "a == 1"),
    ("a&&b||!c   # why", "a and b or not c   # why"),
    ("a  &&\n    b # why", "a and b # why"),
    ('(("x")) in ["y"]', """'"x" in ["y"]'"""),
    ("(-5)", '"-5"'),
    ("(5)", '"5"'),
    ("(true)", '"true"'),
    ("(!a)", "not a"),
    ("&x a==1", "&x a == 1"),
    ("!!str a==1", "!!str a == 1"),
    ("&x !!str (5)", '&x !!str "5"'),
    # quoted
    ("'a==\"it''s\"'", "'a == \"it''s\"'"),
    ("'true ' # why", "'true' # why"),
    ('"a==\\"x\\""', '"a == \\"x\\""'),
    ('"a==\\"x: #\\u00e9\\""', '"a == \\"x: #\\u00e9\\""'),
    ('"a==\\"x: #é\\""', '"a == \\"x: #é\\""'),
    ('"a==\\"\\x07\\u2028\\U0001F600\\""', '"a == \\"\\u0007\\u2028😀\\""'),
    ('"a==\\"\\t\\""', '"a == \\"\\t\\""'),
    ('&x "a==1"', '&x "a == 1"'),
    ('"a&&\\\n    b"', '"a and b"'),
    ("'a&&\n    b'", "'a and b'"),
    # blocks
    ("|\n    a==1", "|\n    a == 1"),
    ("|-  # why\n    a&&\n      b\n\n    # no comment", None),
    ("|-  # why\n    a&&\n      b\n\n  # comment", "|-  # why\n    a and b\n\n  # comment"),
    ("|+\n\n    a&&b\n\n\n", "|+\n\n    a and b\n\n\n"),
    (">\n    a&&\n    b\n", ">\n    a and b\n"),
    (">2-\n      a&&b\n", ">2-\n      a and b\n"),
    ("&x |\n    a&&b\n", "&x |\n    a and b\n"),
    ("|\n     a&&b   \n", "|\n     a and b\n"),
]


@pytest.mark.parametrize(("old", "new"), SCALARS)
@pytest.mark.parametrize("rest", ["", "\n", "\n  weight: 1\n"])
def test_scalars_keep_their_style_and_all_around_them(old: str, new: str | None, rest: str) -> None:
    text = f"  appliesTo: {old}{rest}"
    assert _formatted(text) == f"  appliesTo: {new or old}{rest}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a==1", "a == 1"),
        ("(a<1)??true", None),
        ("'(a<1)??true'", "'(a < 1) ?? true'"),
        ("!!str f(a)==1", "!!str f(a) == 1"),
        ("(5)", '"5"'),
        ('"f([1,2])"', '"f([1, 2])"'),
        ('"a in [1,2]"', '"a in [1, 2]"'),
    ],
)
def test_scalars_in_braces_are_quoted_where_they_have_to_be(old: str, new: str | None) -> None:
    text = f"  let: [{{value: {old}, name: a}}]\n"
    if "?" in old and not old.startswith("'"):
        with pytest.raises(UsageError, match=r":5:17: kubectl reads no text with \? inside"):
            _formatted(text)
    else:
        assert _formatted(text) == f"  let: [{{value: {new or old}, name: a}}]\n"


def test_a_text_of_one_line_stays_one_line_however_long() -> None:
    assert _formatted(f"  appliesTo: {LONG}\n") == f"  appliesTo: {' and '.join(CANONICAL)}\n"


@pytest.mark.parametrize(
    ("head", "indent", "tail"), [("|\n    ", 4, ""), (">-\n    ", 4, ""), ("'", 6, "'"), ("", 6, "")]
)
def test_a_long_text_of_several_lines_is_broken_before_its_words(head: str, indent: int, tail: str) -> None:
    joint = "\n" + " " * indent
    old, new = LONG.replace("&& ", f"&&{joint}"), f"{joint}and ".join(CANONICAL)
    assert _formatted(f"  appliesTo: {head}{old}{tail}\n  weight: 1\n") == (
        f"  appliesTo: {head}{new}{tail}\n  weight: 1\n"
    )


def test_a_long_text_in_double_quotes_is_broken_too() -> None:
    def quoted(text: str) -> str:
        return json.dumps(text).replace("~", "\n      ")

    old = f"  appliesTo: {quoted(LONG.replace(' && ', ' &&~'))}\n"
    assert _formatted(old) == f"  appliesTo: {quoted('~and '.join(CANONICAL))}\n"


def test_line_breaks_of_the_author_stay_where_nothing_else_is_wrong() -> None:
    text = "  appliesTo: |\n    a\n      and\n    b == 1\n"
    assert _formatted(text) == text


def test_line_ends_inside_of_an_escaped_text_stay_line_ends() -> None:
    spec = {"appliesTo": LONG.replace("&&", "&&\n") + "\n", "let": [{"name": "a", "value": "a and\n  b\n"}]}
    policy = {"apiVersion": "policysched.io/v1alpha1", "kind": "SchedulingPolicy", "spec": spec}
    made = json.loads(format_source(json.dumps(policy), "p.json").text)
    assert made["spec"]["appliesTo"] == "\nand ".join(CANONICAL)
    assert made["spec"]["let"] == spec["let"]


@pytest.mark.parametrize(
    "text",
    [
        "a==1  # a comment of the language has no place in the canonical form",
        "a or\nb",
    ],
)
def test_texts_that_may_stay_are_not_touched(text: str) -> None:
    source = f"{HEAD}  appliesTo: {json.dumps(text)}\n"
    assert format_source(source, "p.yaml").count == 0


def test_a_text_that_would_be_too_long_is_not_touched() -> None:
    text = "&&".join(["aaaa"] * 500)
    assert len(text) < 4096 < len(text.replace("&&", " and "))
    assert _formatted(f"  appliesTo: '{text}'\n") == f"  appliesTo: '{text}'\n"


def test_only_policies_of_ours_are_touched_and_numbers_stay() -> None:
    policy = f"{HEAD}  let:\n  - {{name: a, value: 5}}\n  filters:\n  - {{name: b, require: a==1, message: c==1}}\n"
    other = "apiVersion: v1\nkind: ConfigMap\ndata: {appliesTo: a==1}\nspec: {appliesTo: a==1}\n"
    foreign = policy.replace("policysched.io", "example.com")
    made = format_source(f"# SchedulingPolicy\n---\n{other}---\n{policy}...\n---\n{foreign}", "p.yaml")
    assert made.text == f"# SchedulingPolicy\n---\n{other}---\n{policy.replace('a==1', 'a == 1')}...\n---\n{foreign}"
    assert made.count == 1


def test_policies_in_lists_are_formatted() -> None:
    item = "".join(f"  {line}\n" for line in f"{HEAD}  appliesTo: a==1".splitlines())
    text = f"kind: List\napiVersion: v1\nitems:\n- {item[2:]}- {item[2:]}"
    assert format_source(text, "p.yaml").text == text.replace("a==1", "a == 1")


def test_cases_are_written_with_the_arrow() -> None:
    lines = ("node.ready{}1", "'x == \"# \"{}2'", "else{}3", "missing{}0")
    cases = "  scores:\n  - name: a\n    cases:\n" + "".join(f"    - {line}\n" for line in lines)
    assert _formatted(cases.format("->", " ->", "→", " -> ")) == cases.format(*[" → "] * 4)


ALIASES = [
    # a text of two rules
    ("- {name: a, require: &x a==1}\n- {name: b, require: *x}\n", True),
    ("- {name: a, require: &x a==1, when: *x}\n", True),
    # a text that is something else too
    ("- {name: a, require: &x a==1, message: *x}\n", False),
    ("- {name: a, message: &x a==1, require: *x}\n", False),
    # a rule twice
    ("- &x {name: a, require: a==1}\n- *x\n", True),
    ("- &x {name: a, require: a==1}\n- {<<: *x, name: b}\n", True),
    ("- &x {name: a, require: a==1}\n- {<<: *x, name: b, require: a == 2}\n", True),
    ("- {name: a, require: b, &x k: v}\n- {name: b, require: a==1}\n", True),
]


@pytest.mark.parametrize(("rules", "is_formatted"), ALIASES)
def test_a_text_that_an_alias_uses_elsewhere_stays(rules: str, is_formatted: bool) -> None:
    text = f"  filters:\n  {rules.replace(chr(10), chr(10) + '  ').rstrip(' ')}"
    wanted = text.replace("a==1", "a == 1") if is_formatted else text
    assert _formatted(text) == wanted


def test_a_text_that_is_both_a_case_and_a_condition_stays() -> None:
    text = "  appliesTo: &x a==1\n  scores:\n  - {name: a, cases: [*x]}\n"
    made = format_source(HEAD + text, "p.yaml")
    assert made.text == HEAD + text
    assert [one.diagnostic.field for one in made.findings] == ["spec.scores[0].cases[0]"]


def test_aliases_of_aliases_are_counted_as_often_as_they_stand_there() -> None:
    levels = "".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 5))
    text = f"{HEAD}  appliesTo: a==1\n  a0: &a0 [{', '.join('x' * 10)}]\n{levels}"
    assert format_source(text, "p.yaml").count == 1


def test_mistakes_are_reported_with_their_place_and_left_alone() -> None:
    made = format_source(f"{HEAD}  appliesTo: a==\n  let:\n  - {{name: b, value: a==1}}\n", "p.yaml")
    assert made.text == f"{HEAD}  appliesTo: a==\n  let:\n  - {{name: b, value: a == 1}}\n"
    (found,) = made.findings
    said = found.to_dict()
    assert (said["policy"], said["code"], said["field"]) == ("p", "E0100", "spec.appliesTo")
    assert (said["fileLine"], said["fileColumn"]) == (5, 17)


def test_mistakes_of_types_and_names_are_none_of_syntax() -> None:
    assert _formatted('  appliesTo: nod.name<"a"\n') == '  appliesTo: nod.name < "a"\n'


@pytest.mark.parametrize("name", ["p.json", "p.yaml"])
@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_json_stays_json(name: str, indent: int | str | None, ensure_ascii: bool) -> None:
    spec: dict[str, Any] = {"appliesTo": 'a=="ä😀/\x7f\u2028"', "scores": [{"cases": ['a=="ä"->1']}]}
    policy = {
        "apiVersion": "policysched.io/v1alpha1",
        "kind": "SchedulingPolicy",
        "n": [1, -2.5, None, True],
        "spec": spec,
    }
    text = json.dumps(policy, indent=indent, ensure_ascii=ensure_ascii).replace("/", "\\/") + "\n"
    made = format_source(text, name).text
    spec |= {"appliesTo": 'a == "ä😀/\x7f\u2028"', "scores": [{"cases": ['a == "ä" → 1']}]}
    assert json.loads(made) == policy
    if ensure_ascii:
        assert '"a == \\"\\u00e4\\" \\u2192 1"' in made
    assert made.count("\n") == text.count("\n")


def test_several_json_values_in_one_text_are_formatted() -> None:
    one = '{"apiVersion": "policysched.io/v1alpha1", "kind": "SchedulingPolicy", "spec": {"appliesTo": "a==1"}}'
    text = f"\n{one}\n  {one}\n"
    assert format_source(text, "p.json").text == text.replace("a==1", "a == 1")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_stay_as_they_are(end: str) -> None:
    long = LONG.replace("&&", "&&\n    ")
    text = f"{HEAD}  appliesTo: |\n    {long}\n  let:\n  - name: a\n    value: 'a&&\n      b'\n"
    made = format_source(text.replace("\n", end), "p.yaml").text
    assert made.count(end) == made.count("\n") + made.count("\r") - made.count("\r\n")
    assert made.replace(end, "\n") == format_source(text, "p.yaml").text


@pytest.mark.parametrize(
    "data", [b"", b"# policies are elsewhere", b"kind: Pod\n", b"{{ .Values.helm }}", b"a: [", b"\t", b"\xff\0"]
)
def test_files_that_name_no_policy_are_not_looked_at(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(data)
    assert list(format_files([str(path)])) == [Outcome(str(path), data)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: SchedulingPolicy\na: [", "p.yaml:3:1: not valid YAML"),
        ("SchedulingPolicy", "p.yaml:1:1: expected an object, got a text"),
        (f"{HEAD}  a: 1\n  a: 2\n", 'p.yaml:6:3: key "a" is there twice'),
        (f"{HEAD}  appliesTo: *x\n", "p.yaml:5:14: not valid YAML: found undefined alias"),
    ],
)
def test_texts_that_cannot_be_read_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        format_source(text + "\n", "p.yaml")
    assert str(caught.value).startswith(message)


def test_a_result_that_says_something_else_is_never_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        fmt, "rewrite", lambda node, *_, **__: fmt.Edit(node.start_mark.index, node.end_mark.index, "a")
    )
    with pytest.raises(PolicyschedError, match=r"^p\.yaml: cannot be formatted without changing what it says"):
        format_source(f"{HEAD}  appliesTo: a==1\n", "p.yaml")


def _loosened(text: str, chance: Any) -> str:
    """A text of the same meaning with other white space and other signs, outside of its strings."""
    parts = text.split('"')
    if any(part.endswith("\\") for part in parts):
        return f"  {text} "
    signs = ((r" and ", chance.choice(["&&", " && "])), (r" or ", "||"), (r"\bnot (?!in )", "! "))
    for index in range(0, len(parts), 2):
        for word, sign in (*signs, (" ", chance.choice(["  ", " \n "]))):
            parts[index] = re.sub(word, sign, parts[index])
    return '"'.join(parts)


@settings(deadline=None)
@given(st.lists(strategies.conditions(2), min_size=1, max_size=4), st.randoms(use_true_random=False), st.data())
def test_any_policy_written_in_any_style_means_the_same_and_is_stable(texts: list[str], chance: Any, data: Any) -> None:
    texts = [_loosened(text, chance) for text in texts]
    spec = {"filters": [{"name": f"n{index}", "require": text} for index, text in enumerate(texts)]}
    policy = {
        "apiVersion": "policysched.io/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "p"},
        "spec": spec,
    }
    style = data.draw(st.sampled_from([None, "'", '"', "|", ">"]))
    flow = data.draw(st.sampled_from([True, False, None]))
    dumped = yaml.dump(
        policy, default_style=style, default_flow_style=flow, width=data.draw(st.sampled_from([20, 80, 10_000])),
        allow_unicode=data.draw(st.booleans()), indent=data.draw(st.sampled_from([2, 4])),
        line_break=data.draw(st.sampled_from(["\n", "\r\n"])),
    )  # fmt: skip
    # PyYAML writes some texts of several lines that it does not read back, and `?` where kubectl reads none.
    assume(yaml.safe_load(dumped) == policy and (flow is False or "?" not in dumped))
    made = format_source(dumped, "p.yaml")
    (after,) = read(made.text, "p.yaml")
    for old, new in zip(texts, after.object["spec"]["filters"], strict=True):
        wanted = format_text(old)
        assert not isinstance(wanted, Diagnostic)
        assert " ".join(new["require"].split()) == " ".join(wanted.split())
    assert format_source(made.text, "p.yaml") == fmt.Formatted(made.text)
