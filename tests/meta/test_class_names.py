"""A public class has its name to itself: whoever reads the name anywhere knows which one is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping

from tests.meta.test_circles import sources


def shared(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The public classes that several modules define, with these modules."""
    places: dict[str, list[str]] = defaultdict(list)
    for module, text in texts.items():
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module)
    return {name: modules for name, modules in places.items() if len(modules) > 1}


def test_public_classes_have_a_name_of_their_own() -> None:
    assert shared(sources()) == {}


def test_a_class_name_in_two_modules_is_found() -> None:
    texts = {"a": "class One: ...\nclass _Own: ...", "b": "class One: ...\nclass _Own: ...", "c": "class Two: ..."}
    assert shared(texts) == {"One": ["a", "b"]}
