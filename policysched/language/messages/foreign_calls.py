"""Suggestions for functions of lists and of `cluster.nodes` and `cluster.pods` that other languages have.

Gets names and texts as they are written.
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
    """Whether an image is written without a tag and a digest, which the images of pods have."""
    return bool(image) and not {":", "@"} & set(image.rpartition("/")[2])


def is_list(text: str) -> bool:
    """Whether a value, as it is written, is a list."""
    return text in _LISTS or text.startswith(("split(", "["))


def of_list(name: str, items: str, given: str = "") -> str:
    """Return what to write in place of a function or method of a list.

    Args:
        name: What it is called.
        items: The list as it is written.
        given: The other arguments as they are written, perhaps none.
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
    """Return an expression as it stands beside any operator: in brackets, if it has one itself."""
    plain = STRING.sub('""', text)
    whole = text.startswith("(") and text.endswith(")") and plain.count("(") == 1
    return f"({text})" if _OPERATOR.search(plain) and not whole else text


def of_cluster(of: str, name: str, given: str) -> str:
    """Return the aggregate that was meant by a function of `cluster.nodes` or `cluster.pods`."""
    forms = table(f"of_cluster_{of}") if of in {"nodes", "pods"} else {}
    near = difflib.get_close_matches(name, forms, n=1, cutoff=0.75)
    return f"write `{forms[near[0]].replace('...', given or '...')}`" if near else ""


def over_cluster(function: str, path: Names, given: str) -> str:
    """Return the aggregate for a function that is called with a path of `cluster`; nothing for other paths."""
    return of_cluster(path[1], function, given) if path[:1] == ("cluster",) and len(path) == 2 else ""
