"""Formatting files of policies: which of their texts are touched, what stays as it is, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from yaml.nodes import ScalarNode

from policysched.app.rewriting import formatting
from policysched.app.rewriting.files import Rewritten, RewrittenFile
from policysched.app.rewriting.formatting import format_files, format_source
from policysched.app.rewriting.scalars import Edit
from policysched.errors import PolicyschedError, UsageError
from policysched.language import Diagnostic, format_text
from policysched.reading.documents import read
from tests import strategies
from tests.app.formatting import HEAD, LONG, formatted


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
    assert formatted(cases.format("->", " ->", "→", " -> ")) == cases.format(*[" → "] * 4)


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
    assert formatted(text) == wanted


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
    assert formatted('  appliesTo: nod.name<"a"\n') == '  appliesTo: nod.name < "a"\n'


@pytest.mark.parametrize("name", ["p.json", "p.yaml"])
@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_json_stays_json(name: str, indent: int | str | None, ensure_ascii: bool) -> None:
    spec: dict[str, Any] = {"appliesTo": 'a=="ä😀/\x7f\u2028"', "scores": [{"cases": ['a=="ä"->1']}]}
    policy = {
        "apiVersion": "policysched.io/v1beta1",
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
    one = '{"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "spec": {"appliesTo": "a==1"}}'
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
    [found] = format_files([str(path)])
    assert found == RewrittenFile(str(path), data)
    assert list(found.diff()) == []


def test_a_policy_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"{HEAD}  appliesTo: pod.name == 'a'\n", "utf-16")
    [found] = format_files([str(path)])
    assert str(found.problem) == f"{path}: not UTF-8 text"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: SchedulingPolicy\na: [", "p.yaml:3:1: not valid YAML"),
        ("SchedulingPolicy", "p.yaml:1:1: expected an object, got a text"),
        (f"{HEAD}  a: 1\n  a: 2\n", 'p.yaml:6:3: duplicate key "a"'),
        (f"{HEAD}  appliesTo: *x\n", "p.yaml:5:14: not valid YAML: found undefined alias"),
    ],
)
def test_texts_that_cannot_be_read_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        format_source(text + "\n", "p.yaml")
    assert str(caught.value).startswith(message)


def test_a_result_that_says_something_else_is_never_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def rewrite(node: ScalarNode, *_: object, **__: object) -> Edit:
        return Edit(node.start_mark.index, node.end_mark.index, "a")

    monkeypatch.setattr(formatting, "rewrite", rewrite)
    with pytest.raises(PolicyschedError, match=r"^p\.yaml: cannot change the text without changing other values"):
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
        "apiVersion": "policysched.io/v1beta1",
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
    assert format_source(made.text, "p.yaml") == Rewritten(made.text)
