"""What is suggested in place of a wrong name is right: it compiles where the wrong one stood."""

from __future__ import annotations

import re

import pytest

from policysched.language import FIELDS, Environment, Unit, compile_expression
from policysched.language.ir.types import ROOTS
from policysched.language.messages.suggestions import table

SIGNS, WORDS = table("signs"), table("words")

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


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_of_another_language_gets_its_help(sign: str) -> None:
    (found,) = compile_expression(f"node.free.pods {sign} node.free.pods", ENVIRONMENT).errors
    assert (found.code, found.help) == ("E0101", SIGNS[sign])


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_another_language_gets_its_help(word: str) -> None:
    (found,) = compile_expression(f"node.ready {word} node.ready", ENVIRONMENT).errors
    assert (found.code, found.help) == ("E0100", WORDS[word])
