"""Suggestions for syntax and names of other languages or of Kubernetes objects.

Each function takes unknown names and returns one sentence, or an empty text. It uses only the tables of names.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from policysched.language.ir.types import CHOICES, EFFECTS, FIELDS, GROUPS, METHODS, Names
from policysched.language.messages.foreign_calls import SIZES, STRING, is_list, of_cluster, of_list, operand
from policysched.language.messages.suggestions import did_you_mean, table

NAMES_BEGIN: Final = "names begin with `node.`, `pod.`, `cluster.` or `metrics.`"
NO_NODE: Final = "a pending pod has no node; the candidate node is `node.name`"
LISTS: Final = 'write lists as ["a", "b"]'
_ELSE: Final = frozenset({"otherwise", "default", "_"})
# Levels of Kubernetes objects that names in the language omit.
_LAYERS: Final = frozenset({"metadata", "spec", "status", "resources", "node_info"})
LONGEST_VALUE: Final = 60
"""Maximum length of a value that a help text repeats. Units: characters."""
# Names of the evaluated object in CEL.
_OBJECTS: Final = frozenset({"object", "old_object", "self", "this", "resource"})
_OF_NAMESPACES: Final = frozenset({"namespace_object", "namespace"})
_OF_NAMESPACE: Final = {"name": "namespace", "labels": "namespace_labels"}
_IMAGES: Final = frozenset({"image", "images"})
_CONTAINERS: Final = frozenset({"container", "containers", "init_containers"})
_REGULAR: Final = ("match", "matches", "regex", "regexp", "re")
_ARITHMETIC: Final = frozenset("+-*/")
_SIGNS: Final = _ARITHMETIC | frozenset("=!<>?")
_READ: Final = re.compile(r'(\w++(?:\.\w++)*+)(\["[^"]*"\])?')
"""Pattern of a field in an expression, with an optional key."""
# Free amounts are used more often in decisions than the others.
_ORDER: Final = ("free", "allocatable", "requested", "requests")


def snake(name: str) -> str:
    """Return a camel-case name in snake case."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def method(name: str, receiver: str, given: str, known: Collection[str], beside: str = "") -> str:
    """Return the suggestion for a method call on a value, such as `node.name.startsWith("a")`.

    Args:
        name: Name of the method.
        receiver: Source text of the value.
        given: Source text of the arguments, possibly empty.
        known: The existing functions.
        beside: The characters before and after the call.
    """
    if is_list(receiver):
        return (
            f"write `any({receiver}, {_matched('item', given)})`"
            if name in _REGULAR and given
            else of_list(name, receiver, given)
        )
    if name in _REGULAR:
        return f"write `{_matched(receiver, given)}`; regular expressions are not supported"
    if name in table("operators"):
        operator = table("operators")[name]
        meant = f"{operand(receiver)} {operator} {operand(given or '...')}"
        return (
            f"write `({meant})`" if set(beside) & (_ARITHMETIC if operator == "??" else _SIGNS) else f"write `{meant}`"
        )
    return _by_function(name, receiver, given, known)


def _by_function(name: str, receiver: str, given: str, known: Collection[str]) -> str:
    """Return the function to suggest for a method call on a value that is not a list."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.75)
    function = table("methods").get(name) or (name if name in known else next(iter(near), ""))
    if function == "has" and not given and (said := never_missing(receiver)):
        return said
    if function:
        return f"write `{function}({', '.join(filter(None, (receiver, given)))})`"
    if name in table("calls") and name not in SIZES:
        return table("calls")[name]
    return f"the language has no methods; pass the value to a function, as in `contains({receiver}, ...)`"


def around(text: str, start: int, end: int) -> str:
    """Return the characters directly before and after a part of a text, ignoring spaces."""
    return text[:start].rstrip()[-1:] + text[end:].lstrip()[:1]


def call(names: Names, known: Collection[str], given: str = "...", beside: str = "") -> str:
    """Return the suggestion for a call of a name that is not a function.

    Args:
        names: The called path.
        known: The existing functions.
        given: Source text of the arguments.
        beside: The characters before and after the call.
    """
    *parent, name = names
    of = tuple(parent)
    plain = without_layers(of)
    field = FIELDS.get(of)
    if of[:1] and (said := of_the_pod_alone(*names[:2])):
        return said
    if field is not None and field.keyed:
        return f"write `{presence(of, _key_in(given))}`"
    if said := _of_group(plain, name, given):
        return said
    near = did_you_mean(".".join(names), known)
    if field is not None or (of and not near and name in {*known, *_REGULAR}):
        return method(name, ".".join(of), given, known, beside)
    return table("calls").get(".".join(names), "") or near


def _of_group(names: Names, name: str, given: str) -> str:
    """Return the suggestion for an unknown function of `node.pods`, `node.taints`, `pod.tolerations` or `cluster.*`."""
    calls = [one[-1] for one in (*METHODS, *FIELDS) if one[:-1] == names and is_called(one)]
    near = difflib.get_close_matches(name, calls, n=1)
    if names[:1] == ("cluster",) and (said := of_cluster(names[-1], name, given)):
        return said
    if names == ("node", "pods"):
        meant = f"write `node.pods.{near[0]}({given})`" if near else group(names)
        return table("of_pods").get(name) or meant
    if names == ("placement", "nodes"):
        return f"write `placement.nodes.{near[0]}({given})`" if near else group(names)
    key = _key_in(given)
    if names == ("pod", "tolerations") and key in EFFECTS:
        return f'write `{written((*names, "effect"))} == "{key}"`, with the key of the toleration'
    return f"write `{written((*names, near[0] if near else calls[0]), key)}`" if calls else ""


def is_called(names: Names) -> bool:
    """Return whether a field is called with a key, or is a function over the pods of a node or over a placement."""
    found = FIELDS.get(names)
    return names in METHODS or (found is not None and found.called)


def name(first: str, known: Collection[str], metrics: Collection[str], roots: Names) -> str:
    """Return the suggestion for a path that begins with an unknown name.

    Args:
        first: The first name.
        known: Names with which a path can begin.
        metrics: The declared metrics.
        roots: Roots that can have a field of this name, as `node` has `zone`.
    """
    if said := table("nothing").get(first) or table("names").get(first) or table("of_spec").get(first):
        return said
    if first in metrics:
        return f"write `metrics.{first}`"
    if first in _ELSE:
        return "write `else`"
    fields: list[Names] = [(root, first) for root in roots if (root, first) in FIELDS]
    fields = fields or [names for names in (("group", first),) if names in FIELDS]
    found = fields or [names for root in roots for names in _deeper((root,), first)]
    devices = [path for root in roots for path in _devices((root,), first)]
    return _or(devices or [written(one) for one in found]) or did_you_mean(first, known)


def nothing(value: str, *, differs: bool) -> str:
    """Return the suggestion for a comparison of a value with null."""
    shorter = value if len(value) <= LONGEST_VALUE else "..."
    return never_missing(shorter, differs=differs) or f"write `{'' if differs else 'not '}has({shorter})`"


def never_missing(value: str, *, differs: bool = True) -> str:
    """Return the suggestion for a test whether a field is missing, if the field is never missing.

    Args:
        value: The field as written, with its key.
        differs: Whether the test is for a value, not for none.
    """
    read = _READ.fullmatch(value)
    names = tuple(read[1].split(".")) if read else ()
    found = FIELDS.get(names)
    if found is None or found.type.optional or found.keyed is (read is None or read[2] is None):
        return ""
    if names[-1] == "priority":
        return f"a missing priority is 0; write `{value} {'!=' if differs else '=='} 0`"
    if names[1:2] and names[1] in _ORDER:
        none = "<=" if names[1] == "free" else "=="
        return f"a missing resource is 0; write `{value} {'>' if differs else none} 0`"
    return f"`{value}` is never missing"


def keyed(names: Names, key: str) -> str:
    """Return the suggestion for a key that was written as a name (`labels.gpu`); empty if the field has no keys."""
    found = FIELDS.get(names)
    return f"write `{written(names, key)}`" if found is not None and found.keyed and names not in GROUPS else ""


def of_the_other(root: str, name: str) -> str:
    """Return the suggestion for a field of a pod that only nodes have, or of a node that only pods have."""
    return f'a {root} has no such field; write a label, as in `{root}.labels["{name}"]`'


def presence(names: Names, key: str) -> str:
    """Return the condition that tests whether a field has a key; empty if the field has no keys."""
    if names == ("node", "taints"):
        return written((*names, "has"), key)
    found, read = FIELDS.get(names), written(names, key)
    if found is None or not found.keyed:
        return ""
    return f"has({read})" if found.type.optional else f"{read} > 0"


def field(path: Names, size: int, tail: str = "", key: str = "") -> str:
    """Return the suggestion for a path whose first `size` names are not a field.

    Args:
        path: The names.
        size: Number of names that are not a field.
        tail: Text directly after them that can be the rest of a key, such as `/gpu` in `nvidia.com/gpu`.
        key: The key in brackets after the path.
    """
    parent, name, behind = path[: size - 1], path[size - 1], path[size:]
    if parent in _INSIDE:
        return _INSIDE[parent](name, key or ".".join(behind) or "...")
    if len(parent) == 1 and (said := of_the_pod_alone(parent[0], name)):
        return said
    found = FIELDS.get(parent)
    if found is not None and found.keyed:
        return _key(parent, (name, *behind), tail)
    if path[0] in {"node", "pod", "peer"} and (_IMAGES | _CONTAINERS) & set(path):
        return _of_containers(path)
    if name in _LAYERS:
        return _without_layers(path, key or "...")
    roots = ("node",) if path[0] in _OTHERS else ("node", "pod")
    elsewhere: list[Names] = [(root, *path[1:size]) for root in roots if root != path[0]]
    return (
        _renamed(parent, name, behind)
        or _of_spec(path)
        or _or(written(one) for one in _deeper(parent, table("resources").get(name, name)))
        or _or(_devices(parent, name))
        or did_you_mean(name, GROUPS.get(parent, ()))
        or _or(written(one) for one in elsewhere if one in FIELDS)
    )


def of_the_pod_alone(root: str, name: str) -> str:
    """Return the message about a field of `peer` or `victim` that only `pod` has; empty for other fields."""
    known = (*FIELDS, *GROUPS)
    own = name if ("pod", name) in known else table("renamed").get(name, name)
    if root not in _OTHERS or ("pod", own) not in known or (root, own) in known:
        return ""
    other, this = _OTHERS[root]
    return f"`{name}` is not available for {other}, only as `pod.{own}` for {this}"


def victim(names: Names, key: str) -> str:
    """Return the suggestion for a path in `spec.preemption` that begins with `peer`."""
    path = ("victim", *names[1:])
    said = names[1:] and of_the_pod_alone("victim", names[1])
    return said or (f"write `{written(path, key)}`" if path in FIELDS else "write `victim` for the pod that is evicted")


def peer(names: Names, key: str) -> str:
    """Return the suggestion for a path about placed pods that begins with `victim`."""
    path = ("peer", *names[1:])
    return f"write `{written(path, key)}`" if path in FIELDS else "write `peer` for a placed pod"


_OTHERS: Final = {
    "peer": ("placed pods", "the pod that is scheduled"),
    "victim": ("victims", "the pod that preempts"),
}
"""For `peer` and `victim`: which pods the variable stands for, and which pod `pod` stands for beside it."""


def _of_a_namespace(name: str, key: str, root: str = "pod") -> str:
    """Return the suggestion for a field of the pod's namespace, such as `pod.namespace.labels`."""
    labels = of_the_pod_alone(root, "namespace_labels") or _write((root, "namespace_labels"), key)
    if name in {"name", "metadata"}:
        return f"write `{root}.namespace`" if key == "..." or name == "name" else labels
    return labels if name in {"labels", "label"} else ""


_INSIDE: Final[Mapping[Names, Callable[[str, str], str]]] = {
    ("node", "pods"): lambda name, _: table("of_pods").get(name) or group(("node", "pods")),
    ("pod", "namespace"): _of_a_namespace,
    ("peer", "namespace"): lambda name, key: _of_a_namespace(name, key, "peer"),
    ("victim", "namespace"): lambda name, key: _of_a_namespace(name, key, "victim"),
}
"""Functions that suggest a field for unknown names after a path, by that path."""


def foreign_root(path: Names, key: str = "...", roots: Names = ("pod", "node")) -> str:
    """Return the suggestion for a path that begins as in CEL, where `object` is the evaluated object.

    Args:
        path: The names.
        key: The key after them.
        roots: The roots that the object can be.
    """
    first, *rest = path
    if not rest:
        return table("names").get(first, "")
    if first in _OF_NAMESPACES and rest[-1] in _OF_NAMESPACE:
        return _write(("pod", _OF_NAMESPACE[rest[-1]]), key)
    if first not in _OBJECTS:
        return table("names").get(first, "")
    if (_IMAGES | _CONTAINERS) & set(rest):
        return _of_containers(("pod", *rest))
    said = [text for root in ("pod", "node") if root in roots and (text := _without_layers((root, *rest), key))]
    plain = all(text.startswith("write `") and text.endswith("`") for text in said)
    return " or ".join((said[0], *(text.removeprefix("write ") for text in said[1:] if plain))) if said else NAMES_BEGIN


def without_layers(path: Names) -> Names:
    """Return a path without levels such as `spec` and `status`, which the language omits."""
    return tuple(one for one in path if one not in _LAYERS)


def without_root(path: Names) -> str:
    """Return the suggestion for a path that begins inside an object, such as `spec.node_name` of a pod."""
    if not path or path[0] not in _LAYERS:
        return ""
    return next(filter(None, (_without_layers((root, *path)) for root in ("pod", "node"))), NAMES_BEGIN)


def group(names: Names, key: str = "") -> str:
    """Return the suggestion for a path that is no field but the beginning of longer fields."""
    if methods := [f".{one[-1]}(...)" for one in METHODS if one[:-1] == names]:
        number = "pods is `node.requested.pods`" if names[0] == "node" else "nodes is `placement.size`"
        return f"write {'.'.join(names)}{', '.join(methods[:-1])} or {methods[-1]}; the number of {number}"
    called = [(*names, one) for one in GROUPS[names]]
    if all(one in FIELDS and FIELDS[one].called for one in called):
        return _or(written(one, key or "...") for one in called if not key or one not in CHOICES)
    return f"its fields are {', '.join(GROUPS[names])}"


def written(names: Names, key: str = "...") -> str:
    """Return how the policy language writes a field, with its key if the field is a map, as in `node.labels["x"]`."""
    found, dotted = FIELDS.get(names), ".".join(names)
    key = key.replace("\\", "\\\\").replace('"', '\\"')
    if found is not None and found.called:
        return f'{dotted}("{key}")'
    return f'{dotted}["{key}"]' if found is not None and found.keyed else dotted


def _or(texts: Iterable[str]) -> str:
    quoted = [f"`{text}`" for text in texts]
    if not quoted:
        return ""
    *most, last = quoted
    return f"write {', '.join(most)} or {last}" if most else f"write {last}"


def _key_in(given: str) -> str:
    """Return the key among arguments: the only argument, if it is a string."""
    found = STRING.fullmatch(given)
    return found[1] if found else "..."


def _matched(value: str, given: str) -> str:
    """Return the condition to use instead of a regular expression; empty if there is no equivalent."""
    found = STRING.fullmatch(given)
    text = found[1] if found else ""
    begins, ends = text.startswith("^"), text.endswith("$")
    plain = text.removeprefix("^").removesuffix("$").replace(".*", "*").replace(".", "?")
    if not plain or set("[](){}+|\\^$") & set(plain):
        return f'glob({value}, "a*")'
    part = plain.strip("*")
    if not begins and not ends and part and not set("*?") & set(part):
        return f'contains({value}, "{part}")'
    if not begins:  # without an anchor, any text can be at that end
        plain = "*" + plain.lstrip("*")
    if not ends:
        plain = plain.rstrip("*") + "*"
    return f'glob({value}, "{plain}")'


def _key(parent: Names, names: Names, tail: str) -> str:
    if (*names, tail)[:2] == ("ephemeral", "-storage"):
        return "write `ephemeral_storage`"
    if not tail and parent in GROUPS and names[0] in table("resources"):
        return f"write `{table('resources')[names[0]]}`"
    if tail:
        return f"write `{written(parent, '.'.join(names) + tail)}`"
    if names[0] in table("devices") and parent in GROUPS:
        return f"write `{written(parent, table('devices')[names[0]])}`, or the resource name of your devices"
    whole = f"write `{written(parent, '.'.join(names))}`"
    return did_you_mean(names[0], GROUPS.get(parent, ())) or whole + (
        " with the whole key in quotes" if names[1:] else ""
    )


def _of_containers(path: Names) -> str:
    if not _IMAGES & set(path):
        return "single containers are not available; `pod.requests.cpu` is the sum over all containers"
    if path[0] == "node":
        return "image names are not available; `node.cached_image_bytes` is the size of the pod's images on the node"
    if path[0] == "pod":
        return "the images of all containers are the list `pod.images`; write `any(pod.images, item == ...)`"
    return f"image names are not available; use a label, `{path[0]}.labels[...]`, or the size, `{path[0]}.image_bytes`"


def _without_layers(path: Names, key: str = "...") -> str:
    rest = tuple(table("renamed").get(one, one) for one in path if one not in _LAYERS)
    if rest == ("pod", "node_name"):
        return NO_NODE
    if said := _of_spec(rest):
        return said
    for size in range(len(rest), 1, -1):
        found = FIELDS.get(rest[:size])
        if found is not None:
            return _write(rest[:size], ".".join(rest[size:]) or key)
    return ""


def _of_spec(path: Names) -> str:
    """Return the field of a policy's spec that replaces a field of a pod's spec in an expression."""
    return table("of_spec").get(path[-1], "") if path[:1] in {("pod",), ("peer",)} else ""


def _write(names: Names, key: str = "...") -> str:
    since = ", the time since creation" if names[-1] == "age" else ""
    return f"write `{written(names, key)}`{since}"


def _renamed(parent: Names, name: str, behind: Names) -> str:
    names = (*parent, table("renamed").get(name, ""), *behind)
    if names not in FIELDS:
        return ""
    said = _write(names)
    return f"limits of placed pods are not available; {said}" if name == "limits" else said


def _deeper(parent: Names, name: str) -> list[Names]:
    """Return the deeper fields below a path that end with a name, as `node.free.cpu` for `cpu`."""
    found = [names for names in FIELDS if names[: len(parent)] == parent and names[-1] == name]
    return sorted((names for names in found if names[-2] in _ORDER), key=lambda names: _ORDER.index(names[-2]))


def _devices(parent: Names, name: str) -> list[str]:
    groups = [(*parent, one) for one in _ORDER if (*parent, one) in FIELDS]
    return [written(one, table("devices")[name]) for one in groups] if name in table("devices") else []
