"""Warnings about strings that no Kubernetes object can have: keys, label values, names, template text.

The rules are those of the API server for new objects. Strings with invisible characters are skipped; W0706 reports
them.
"""

from __future__ import annotations

import re
from typing import Final

from policysched.language.functions.signatures import LONGEST_QUOTE, Checker
from policysched.language.ir.graph import Input, Op, Typed
from policysched.language.ir.tree import Call, Comparison, Listing, Literal, LiteralKind, Path, Span, walk
from policysched.language.ir.types import CHOICES, EFFECTS, GROUPS, WELL_KNOWN_LABELS, Names
from policysched.language.messages import foreign_syntax
from policysched.language.messages.foreign_calls import IMAGES, without_tag
from policysched.language.messages.suggestions import shown

_PART: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_VALUE: Final = re.compile(rf"(?:{_PART})?")
_DNS: Final = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_NAME: Final = re.compile(_DNS)
_KEY: Final = re.compile(rf"(?:{_DNS}/)?{_PART}")
_TEMPLATE: Final = "{{"
_PATTERN: Final = re.compile(r"[*?]")
_SEPARATOR: Final = re.compile(r"[,|]")
_WITH_VALUE: Final = re.compile(r"([^=:]+?)(?:=([^:]*)|: ([^:]*))?(?::([A-Za-z]+))?")
"""Pattern of a key with a value or an effect, as `kubectl` prints labels and taints."""
_NAMES: Final = frozenset({"name", "namespace", "service_account", "priority_class"})
_LABELS: Final = frozenset({"labels", "namespace_labels"})
_RULES: Final = {
    "label": "label values have at most 63 letters, digits, `-`, `_` and `.`",
    "name": "names have only lower-case letters, digits, `-` and `.`",
}
_KEY_RULE: Final = "keys have at most 63 letters, digits, `-`, `_` and `.`, perhaps after a DNS name and `/`"
_OF: Final = {"annotations": "annotation", "taints": "taint", "tolerations": "toleration"}
_PLAIN: Final = frozenset({"conditions", "addresses"})
_OWNER_KIND: Final = ("owner_kind",)
_OWNERS: Final = {"Deployment": "ReplicaSet", "CronJob": "Job"}
"""Kinds of objects that create the controllers which own pods."""
_CONTROLLERS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "Node", "ReplicationController")
_LETTERS: Final = {"label": re.compile(r"[A-Za-z0-9_.*?-]+"), "name": re.compile(r"[a-z0-9.*?-]+")}
"""For each kind of string (label, name, …), the pattern of the characters that it can contain."""
_REGULAR: Final = re.compile(r"[\^$|+(){}\[\]\\]")
_PARTS: Final = frozenset({Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS})


def is_template(text: str) -> bool:
    """Return whether a text contains a Helm template."""
    return _TEMPLATE in text


def warn_of_template(checker: Checker, literal: Literal) -> None:
    """Report a string that contains a Helm template."""
    if is_template(literal.text):
        checker.report("W0714", literal.span, "template")


def warn_of_values(checker: Checker, comparison: Comparison, node: Typed) -> None:
    """Report comparisons of a label or name with strings that no label or name can be."""
    for one, other, expr in zip(node.args, reversed(node.args), (comparison.right, comparison.left), strict=True):
        rule = _rule(one)
        if other.op != Op.CONSTANT or not isinstance(one.data, Input):
            continue
        for item in expr.items if isinstance(expr, Listing) else (expr,):
            text = item.text if isinstance(item, Literal) else str(other.data)
            hint = _instead_of_owner(text) if one.data.path == _OWNER_KIND else ""
            if rule and _is_impossible(rule, text):
                hint = _instead(rule, one.data, text, comparison.operator)
            if hint:
                checker.report("W0714", item.span, input=one.data.text, value=shown(text), hint=hint)


def _instead_of_owner(text: str) -> str:
    """Return the suggestion for a kind that does not own pods; empty if the kind can own pods."""
    kind = text.lower()
    right = next((one for one in (*_OWNERS, *_CONTROLLERS) if one.lower() == kind), "")
    if right in _OWNERS:
        return f'a pod of a {right} has the owner {_OWNERS[right]}; write `"{_OWNERS[right]}"`'
    return f'write `"{right}"`' if right not in {"", text} else ""


def warn_of_images(checker: Checker, comparison: Comparison, item: str = "") -> None:
    """Report a comparison with an image without a tag: images of pods always have a tag or digest.

    Args:
        checker: The checker.
        comparison: The comparison.
        item: The name of the single image that is compared; empty if the list is.
    """
    inverted = "not " if comparison.operator in {"!=", "not in"} else ""
    for one, other in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
        if not isinstance(one, Path) or one.dotted != (item or IMAGES):
            continue
        for image in other.items if isinstance(other, Listing) else (other,):
            if isinstance(image, Literal) and _has_no_tag(image):
                part = f'contains(item, "{shown(image.text)}")'
                meant = f"{inverted}{part}" if item else f"{inverted}any({IMAGES}, {part})"
                hint = f"images have a tag or a digest; write `{meant}`"
                checker.report("W0714", image.span, "part", input=IMAGES, value=shown(image.text), hint=hint)


def _has_no_tag(image: Literal) -> bool:
    return image.kind is LiteralKind.STRING and not is_template(image.text) and without_tag(image.text)


def warn_of_images_one_by_one(checker: Checker, call: Call) -> None:
    """Report images without a tag in a condition on the images of a pod."""
    items = call.arguments[0]
    if isinstance(items, Path) and items.dotted == IMAGES and call.function.dotted in {"any", "all"}:
        for part in walk(call.arguments[1]):
            if isinstance(part, Comparison):
                warn_of_images(checker, part, "item")


def warn_of_parts(checker: Checker, call: Call, node: Typed | None) -> None:
    """Report patterns where functions compare literally, and characters that a field never has."""
    if node is None or node.op not in {*_PARTS, Op.GLOB}:
        return
    field, part = node.args
    rule = _rule(field)
    if not rule or not isinstance(field.data, Input) or not isinstance(part.data, str):
        return
    name, variant, hint = field.data.text, "pattern" if node.op == Op.GLOB else "part", ""
    if node.op in _PARTS and _PATTERN.search(part.data):
        hint = f"for a pattern, write glob({name}, ...)"
    elif part.data.isprintable() and not is_template(part.data) and not _LETTERS[rule].fullmatch(part.data):
        hint = _instead_of_pattern(rule, name, part.data)
    if hint:
        checker.report("W0714", call.arguments[1].span, variant, input=name, value=shown(part.data), hint=hint)


def _instead_of_pattern(rule: str, field: str, text: str) -> str:
    """Return the suggestion for a pattern with characters that a field never has."""
    if not _REGULAR.search(text):
        return _RULES[rule]
    parts = text.split("|")
    if len(parts) == 1 or not all(map(_LETTERS[rule].fullmatch, parts)) or len(text) > LONGEST_QUOTE:
        return "a pattern has only `*` and `?`; write one glob(...) for each pattern, with `or` between them"
    if any(map(_PATTERN.search, parts)):
        patterns = " or ".join(f'glob({field}, "{part}")' for part in parts)
        return f"write `({patterns})`"
    items = ", ".join(f'"{part}"' for part in parts)
    return f"for one of several, write `{field} in [{items}]`"


def warn_of_key(checker: Checker, names: Names, key: Typed, span: Span) -> None:
    """Report a constant key that no label, annotation, taint, toleration or resource can have."""
    kind = names[1]
    if key.op != Op.CONSTANT or kind in _PLAIN or names[-1] == "has_effect":
        return
    text = str(key.data)
    of_taint = kind in {"taints", "tolerations"} and text in EFFECTS
    if not of_taint and (_fits_key(text, kind) or not text.isprintable() or _TEMPLATE in text):
        return
    what = _OF.get(kind, "resource" if names in GROUPS else "label")
    checker.report("W0714", span, "key", what=what, value=shown(text), hint=_meant_by_key(names, text))


def _fits_key(text: str, kind: str) -> bool:
    if kind == "tolerations" and not text:  # such a toleration matches all keys
        return True
    return _KEY.fullmatch(text.lower() if kind == "annotations" else text) is not None


def _meant_by_key(names: Names, text: str) -> str:
    """Return the suggestion for a field with an impossible key."""
    root, kind = names[:2]
    if text in EFFECTS:
        has = foreign_syntax.written(("node", "taints", "has_effect"), text)
        of_key = f'{foreign_syntax.written((root, kind, "effect"))} == "{text}"'
        return f"write `{has if kind == 'taints' else of_key}`"
    found = _WITH_VALUE.fullmatch(text)
    if found is None or not _fits_key(found[1], kind) or not found[1]:
        return _KEY_RULE
    key, value, effect = found[1], found[2] or found[3] or "", found[4] or ""
    if kind in {"taints", "tolerations"}:
        name, wanted = ("effect", effect) if effect in EFFECTS else ("value", value)
        return f'write `{foreign_syntax.written((root, kind, name), key)} == "{wanted}"`' if wanted else _KEY_RULE
    is_value = not effect and found[0] != key and _VALUE.fullmatch(value) and names not in GROUPS
    return f'write `{foreign_syntax.written(names, key)} == "{value}"`' if is_value else _KEY_RULE


def _rule(node: Typed) -> str:
    """Return the naming rule (label, name, …) for the strings of a field; empty if every string is possible."""
    if not isinstance(node.data, Input) or node.op != Op.INPUT or (node.data.root, *node.data.path) in CHOICES:
        return ""
    root, name = node.data.root, node.data.path[0]
    if name in _LABELS or (root == "node" and name in WELL_KNOWN_LABELS):
        return "label"
    return "name" if name in _NAMES else ""


def _is_impossible(rule: str, text: str) -> bool:
    form = _VALUE if rule == "label" else _NAME
    return form.fullmatch(text) is None and text.isprintable() and _TEMPLATE not in text


def _instead(rule: str, field: Input, text: str, operator: str) -> str:
    """Return the suggestion for a comparison with an impossible string."""
    inverted = operator in {"!=", "not in"}
    value = text.replace('"', '\\"')
    if _PATTERN.search(text):
        return f'for a pattern, write `{"not " if inverted else ""}glob({field.text}, "{shown(value)}")`'
    parts = [part.strip() for part in _SEPARATOR.split(text)]
    form = _VALUE if rule == "label" else _NAME
    if len(parts) > 1 and all(parts) and all(map(form.fullmatch, parts)) and shown(text) == text:
        items = ", ".join(f'"{part}"' for part in parts)
        return f"for one of several, write `{field.text} {'not in' if inverted else 'in'} [{items}]`"
    return _RULES[rule]
