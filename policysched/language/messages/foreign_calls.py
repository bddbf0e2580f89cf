"""Suggestions for functions of lists, `cluster.nodes` and `cluster.pods` that exist in other languages.

Functions take names and texts as written by the user.
"""

from __future__ import annotations

import difflib
import re
from typing import Final

from policysched.language.ir.types import FIELDS, Kind, Names
from policysched.language.messages.suggestions import table

_LISTS: Final = frozenset(".".join(names) for names, one in FIELDS.items() if one.type.kind is Kind.LIST)
SIZES: Final = ("len", "length", "size")
IMAGES: Final = "pod.images"
STRING: Final = re.compile(r'"([^"\\]*)"')
_ITEM: Final = re.compile(r"\bitem\b")
_OPERATOR: Final = re.compile(r"\b(?:and|or|not|in)\b|[-+*/<>=!?&|]")


def without_tag(image: str) -> bool:
    """Return whether an image name has neither tag nor digest."""
    return bool(image) and not {":", "@"} & set(image.rpartition("/")[2])


def is_list(text: str) -> bool:
    """Return whether the text of an expression is a list."""
    return text in _LISTS or text.startswith(("split(", "["))


def of_list(name: str, items: str, given: str = "") -> str:
    """Return the suggestion for a call of a list function or method that the language does not have.

    Args:
        name: Name of the function or method.
        items: Source text of the list.
        given: Source text of the other arguments, possibly empty.
    """
    own = table("of_lists").get(name, name)
    if own == "in" and _ITEM.search(STRING.sub("", given)):
        own = "any"
    if own in {"any", "all", "min", "max"}:
        return f"write `{own}({items}, {given or '...'})`"
    if own == "in" and items == IMAGES and (not given or (STRING.fullmatch(given) and without_tag(given[1:-1]))):
        return f"write `any({items}, contains(item, {given or '...'}))`"
    if own == "in":
        return f"write `{operand(given or '...')} in {items}`"
    if own in {"starts_with", "ends_with", "contains", "glob"}:
        return f"write `any({items}, {own}(item, {given or '...'}))`"
    if own in SIZES:
        return f"the length of a list is not available; to test for items, write `any({items}, true)`"
    return f"use a list only after `in`, and as the first argument of any, all, min or max, as in `any({items}, ...)`"


def operand(text: str) -> str:
    """Return the text of an expression for use as an operand: in parentheses if it contains an operator."""
    plain = STRING.sub('""', text)
    whole = text.startswith("(") and text.endswith(")") and plain.count("(") == 1
    return f"({text})" if _OPERATOR.search(plain) and not whole else text


def of_cluster(of: str, name: str, given: str) -> str:
    """Return the aggregate to suggest for a call of an unknown function of `cluster.nodes` or `cluster.pods`."""
    forms = table(f"of_cluster_{of}") if of in {"nodes", "pods"} else {}
    near = difflib.get_close_matches(name, forms, n=1, cutoff=0.75)
    return f"write `{forms[near[0]].replace('...', given or '...')}`" if near else ""


def over_cluster(function: str, path: Names, given: str) -> str:
    """Return the suggestion for a function that is called with a path of `cluster`; empty for other paths."""
    return of_cluster(path[1], function, given) if path[:1] == ("cluster",) and len(path) == 2 else ""
