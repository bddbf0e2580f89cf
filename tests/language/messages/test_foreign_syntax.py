"""What is suggested in place of a wrong name is right: it compiles where the wrong one stood."""

from __future__ import annotations

import re

import pytest

from policysched.language import FIELDS, Environment, Unit, compile_expression
from policysched.language.ir.types import ROOTS
from policysched.language.messages.suggestions import table

SIGNS, WORDS = table("signs"), table("words")

LETS = {"a": "node.ready", "b": "node.cordoned", "c": "node.free.pods > 1"}
ENVIRONMENT = Environment("let", metrics={"load": Unit.NUMBER})
NAMES = sorted({name for names in FIELDS for name in names} - ROOTS)
FOREIGN = ("gpu", "capacity", "limits", "unschedulable", "hostname", "label", "status", "x")
LAYERS = ("metadata", "spec", "status", "status.capacity", "spec.resources", "resources.limits")
PARENTS = ("node", "pod", "cluster", "node.free", "node.requested", "pod.requests", "node.pods", "node.taints")


def suggested(text: str) -> list[str]:
    """The paths that the first error's help says to write, those of peers in what knows peers; no calls."""
    found = compile_expression(text, ENVIRONMENT).errors
    said = re.findall(r"`([^`]*)`", found[0].help or "") if found and (found[0].help or "").startswith("write") else []
    said = [path for path in said if "(...)" not in path]
    return [f"node.pods.count(has({path}))" if path.startswith("peer.") else path for path in said]


@pytest.mark.parametrize("parent", PARENTS)
@pytest.mark.parametrize("name", [*NAMES, *FOREIGN])
def test_what_is_suggested_for_a_field_compiles(parent: str, name: str) -> None:
    for text in suggested(f"{parent}.{name}"):
        assert compile_expression(text, ENVIRONMENT).errors == (), text


@pytest.mark.parametrize("layer", LAYERS)
def test_what_is_suggested_for_a_path_of_an_object_compiles(layer: str) -> None:
    for root in ("node", "pod"):
        for name in NAMES:
            for text in suggested(f"{root}.{layer}.{name}"):
                assert compile_expression(text, ENVIRONMENT).errors == (), text


@pytest.mark.parametrize("name", [*NAMES, *FOREIGN, "load"])
def test_what_is_suggested_for_a_name_alone_compiles(name: str) -> None:
    found = [*suggested(name), *suggested(f"node.pods.any(has({name}))")]
    assert found or name in {"has", "count", "any", "sum"}
    for text in found:
        assert compile_expression(text, ENVIRONMENT).errors == (), text


@pytest.mark.parametrize(
    ("text", "wrong", "meant"),
    [
        ("(a or b) == false", "", "not (a or b)"),
        ("(a and b) == false", "", "not (a and b)"),
        ("b and (a or c) == true", "(a or c) == true", "b and (a or c)"),
        ("b or false != (a and c)", "false != (a and c)", "b or a and c"),
        ("(not a) == false", "", "a"),
        ("(a or b) != true and c", "(a or b) != true", "not (a or b) and c"),
        ('(a or b) == "false" and c', '(a or b) == "false"', "not (a or b) and c"),
        ("(1 < 2) == false", "", "not (1 < 2)"),
        ("number(node.zone).orElse(0) * 2 > 5", "number(node.zone).orElse(0)", "(number(node.zone) ?? 0) * 2 > 5"),
        ("5 - number(node.zone).orElse(1) > 5", "number(node.zone).orElse(1)", "5 - (number(node.zone) ?? 1) > 5"),
        ('(node.zone ?? "a").equals("b")', "", '(node.zone ?? "a") == "b"'),
        ('(node.zone ?? "a") == "a" or "b"', "", '(node.zone ?? "a") in ["a", "b"]'),
    ],
)
def test_what_is_suggested_keeps_the_brackets_that_it_needs(text: str, wrong: str, meant: str) -> None:
    lets = {name: compile_expression(field, ENVIRONMENT).program for name, field in LETS.items()}
    around = Environment("filter", lets={name: one.root for name, one in lets.items() if one})
    helps = [one.help or "" for one in compile_expression(text, around).errors]
    instead = re.findall(r"`([^`]*)`", helps[0])[0]
    mended = compile_expression(text.replace(wrong or text, instead), around).program
    wanted = compile_expression(meant, around).program
    assert mended is not None
    assert wanted is not None
    assert mended.root is wanted.root


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_of_another_language_gets_its_help(sign: str) -> None:
    (found,) = compile_expression(f"node.free.pods {sign} node.free.pods", ENVIRONMENT).errors
    own = "write `node.free.pods ?? node.free.pods`" if sign == "?:" else SIGNS[sign]
    assert (found.code, found.help) == ("E0101", own)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_another_language_gets_its_help(word: str) -> None:
    (found,) = compile_expression(f"node.ready {word} node.ready", ENVIRONMENT).errors
    assert (found.code, found.help) == ("E0100", WORDS[word])


@pytest.mark.parametrize(
    ("text", "help_text"),
    [
        ("node.load > 1", "write `metrics.load`"),
        ("node.metrics.load > 1", "write `metrics.load`"),
        ('node.name notin ["a"]', "write `not in`"),
        ('node.name contains "x"', "write contains(x, y)"),
        ('node.name startsWith "x"', "write starts_with(x, y)"),
        ('node.name endswith "x"', "write ends_with(x, y)"),
        ('node.name eq "x"', "write `==`"),
        ("node.free.cpu gt 1", "write `>`"),
        ('node.name LIKE "x*"', "write glob(...)"),
        ("node.free.cpu BETWEEN 1 AND 2", "write `a < b and b < c`"),
        ('node.name IS "x"', WORDS["is"]),
        ('pod.qos_class == "Burstable"', "write `pod.qos`"),
        ("let.x > 1", "write `let` names without a prefix, as in `x`, and metrics as `metrics.x`"),
    ],
)
def test_words_of_other_languages_lead_to_what_compiles(text: str, help_text: str) -> None:
    assert compile_expression(text, ENVIRONMENT).errors[0].help == help_text
