"""Hypothesis strategies: expressions of the policy language that compile.

Expressions are made as text, by type, so that they pass the parser like a user's. Where one stands decides what it may
name: `Where` says so. The clusters to run them on are in `tests.worlds`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

WORDS = ("a", "b", "ab", "a-b", "", "3", "2.5", "-1", "cpu", "gpu", 'q"\\', "1.2", "v1.10", "1.2-rc.1", "1.2+b_1")
KEYS = ("x", "y")
ZONES = ("Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe")
Texts = st.SearchStrategy[str]


@dataclass(frozen=True)
class Where:
    """What an expression may name: peers in `node.pods.*`, counters outside of it, `normalize` outside of both."""

    peers: bool = False
    counters: bool = True
    normalize: bool = False


ROWS = Where()
SCORES = Where(normalize=True)


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


STRING_LEAVES = (
    *(quoted(word) for word in WORDS),
    "node.name",
    "node.zone",
    "node.arch",
    'node.conditions["x"]',
    'node.conditions[pod.labels["x"]]',
    'node.taints.value("x")',
    "node.taints.effect(pod.name)",
    "node.kernel_version",
    'node.addresses["x"]',
    *(f'node.labels["{key}"]' for key in KEYS),
    'pod.labels["x"]',
    'pod.annotations["x"]',
    'pod.tolerations.value("x")',
    "pod.name",
    "group.name",
    'group.labels["x"]',
    "weekday()",
    f'weekday("{ZONES[0]}")',
)
PEER_STRINGS = (
    "peer.phase", 'peer.annotations["x"]', "peer.name", "peer.namespace", *(f'peer.labels["{key}"]' for key in KEYS),
    "peer.owner_kind",
)  # fmt: skip
SCALAR_STRINGS = ('"x"', '"a"', 'pod.labels["x"]', 'pod.annotations["x"]', 'concat(pod.name, "b")')
UNIT_LEAVES: Mapping[str, tuple[str, ...]] = {
    "number": ("0", "1", "2.5", "80%", "node.free.pods", "cluster.nodes", "pod.priority", 'node.free["gpu"]',
               'node.allocatable[pod.labels["x"]]', 'number(node.labels["x"])', 'number(pod.annotations["x"])',
               "pod.containers", "node.group_members", "group.placed", "group.min_count", 'group.requests["gpu"]',
               'pod.limits["gpu"]', 'pod.limits[pod.labels["x"]]',
               "metrics.load", "hour()", f'hour("{ZONES[1]}")'),
    "cpu": ("node.free.cpu", "node.requested.cpu", "pod.requests.cpu", "pod.limits.cpu", "metrics.cores"),
    "bytes": ("1Ki", "node.free.memory", "node.cached_image_bytes", "pod.image_bytes"),
    "duration": ("5min", "90s", "1.5h", "node.age", "pod.age"),
}  # fmt: skip
PEER_UNITS: Mapping[str, tuple[str, ...]] = {
    "number": ("peer.priority", 'peer.requests["gpu"]', 'number(peer.labels["x"])'),
    "cpu": ("peer.requests.cpu",),
    "bytes": ("peer.requests.memory", "peer.image_bytes"),
    "duration": ("peer.age",),
}
CONDITION_LEAVES = (
    "true", "false", "node.ready", "node.cordoned", 'node.taints.has("k")', "node.taints.has(pod.name)",
    'node.taints.has_effect("NoExecute")', '(node.conditions["x"] != "True")',
    'pod.tolerations.has("x")', "pod.tolerations.has(pod.name)",
    'clock("22:00", "06:00")', f'clock("09:00", "17:30", "{ZONES[2]}")',
)  # fmt: skip
LISTS = st.sampled_from(("pod.images", 'split(pod.labels["x"], "-")', '["a", "3"]', "pod.claims"))
ITEM_CONDITIONS = st.sampled_from((
    '(item == "a")', '(item != pod.labels["x"])', "(number(item) > 1)", "has(number(item))", '(item in ["a", "3"])',
    'starts_with(item, "a")', "(version(item) < version(\"1.2\"))", '(concat(item, "b") == "ab")', "true",
))  # fmt: skip
PEER_CONDITIONS = (
    '(peer.labels["x"] == "a")', "(peer.priority > 1)", "(peer.name == pod.name)", "(peer.namespace != node.zone)",
    "has(peer.owner_kind)", '(peer.labels["y"] in ["a", "b", "3"])', "(peer.requests.cpu >= pod.requests.cpu)",
    '(number(peer.labels["x"]) < 3)',
)  # fmt: skip
DOMAINS = ("", " by node.zone", ' by node.labels["x"]', " by node.name", ' by node.labels[pod.labels["x"]]')
# What makes an expression one over nodes: an aggregate of anything else is a mistake.
NODE_LEAVES: Mapping[str, str] = {
    "number": "node.free.pods", "cpu": "node.free.cpu", "bytes": "node.free.memory", "duration": "node.age",
}  # fmt: skip


def _several(item: Texts, least: int = 1, most: int = 3) -> st.SearchStrategy[list[str]]:
    return st.lists(item, min_size=least, max_size=most)


def _join(separator: str, items: Texts, least: int = 2) -> Texts:
    return _several(items, least).map(lambda parts: "(" + separator.join(parts) + ")")


def _call(name: str, *arguments: Texts) -> Texts:
    return st.tuples(*arguments).map(lambda parts: f"{name}({', '.join(parts)})")


def _leaves(of_nodes: Sequence[str], of_peers: Sequence[str], where: Where) -> Texts:
    leaves = st.sampled_from(of_nodes)
    return st.one_of(st.sampled_from(of_peers), leaves) if where.peers and of_peers else leaves


def _pattern() -> Texts:
    return st.text("ab*?-3", min_size=1, max_size=5).map(quoted)


@functools.cache
def strings(depth: int, where: Where = ROWS) -> Texts:
    leaves = _leaves(STRING_LEAVES, PEER_STRINGS, where)
    if depth <= 0:
        return leaves
    inner, condition = strings(depth - 1, where), conditions(depth - 1, where)
    keyed = st.sampled_from(SCALAR_STRINGS).map(lambda key: f"node.labels[{key}]")
    concat = _several(inner).map(lambda parts: f"concat({', '.join(parts)})")
    chosen = _call("if", condition, inner, inner)
    made = [leaves, keyed, concat, _join(" ?? ", inner), chosen, _call("only", condition, inner)]
    if where.peers:
        made.append(st.sampled_from(SCALAR_STRINGS).map(lambda key: f"peer.labels[{key}]"))
    return st.one_of(made)


@functools.cache
def versions(depth: int, where: Where = ROWS) -> Texts:
    leaves = st.sampled_from(('version("1.2")', 'version("v1.10.0")', 'version(node.labels["x"])'))
    if depth <= 0:
        return leaves
    inner, condition = versions(depth - 1, where), conditions(depth - 1, where)
    # A constant that is no version is a mistake: what is joined with a column is none.
    parsed = strings(depth - 1, where).map(lambda text: f'version(node.labels["y"] ?? {text})')
    return st.one_of(leaves, parsed, _join(" ?? ", inner), _call("if", condition, inner, inner))


@functools.cache
def quantities(unit: str, depth: int, where: Where = ROWS) -> Texts:
    leaves = _leaves(UNIT_LEAVES[unit], PEER_UNITS[unit], where)
    if depth <= 0:
        return leaves
    made = [leaves, *_combined(unit, depth, where), aggregates(unit, depth, where)]
    if unit == "number":
        made += _numbers(depth, where)
    if where.counters:
        made.append(_sums(unit, depth))
    return st.one_of(made)


def _combined(unit: str, depth: int, where: Where) -> list[Texts]:
    """Quantities of a unit, made of others of the same."""
    inner = quantities(unit, depth - 1, where)
    number, condition = quantities("number", depth - 1, replace(where, normalize=False)), conditions(depth - 1, where)
    return [
        _join(" + ", inner),
        _join(" - ", inner),
        _join(" ?? ", inner),
        st.tuples(inner, number).map(lambda two: f"({two[0]} * {two[1]})"),
        st.tuples(inner, number).map(lambda two: f"({two[0]} / {two[1]})"),
        inner.map(lambda text: f"-{text}"),
        inner.map(lambda text: f"abs({text})"),
        _call("if", condition, inner, inner),
        _call("only", condition, inner),
        _several(inner).map(lambda parts: f"least({', '.join(parts)})"),
        _several(inner).map(lambda parts: f"greatest({', '.join(parts)})"),
        _call("clamp", inner, inner, inner),
    ]


def _numbers(depth: int, where: Where) -> list[Texts]:
    plain = replace(where, normalize=False)
    others = st.one_of([st.tuples(*[quantities(unit, depth - 1, plain)] * 3) for unit in UNIT_LEAVES])
    counted = conditions(depth - 1, replace(plain, peers=False)).map(lambda text: f"(node.ready and {text})")
    made = [
        others.map(lambda three: f"({three[0]} / {three[1]})"),
        others.map(lambda three: f"scale({', '.join(three)})"),
        _call("round", quantities("number", depth - 1, plain)),
        _call("number", strings(depth - 1, where)),
        _call("max", LISTS, st.just("number(item)")),
        _call("min", LISTS, st.just("(number(item) + pod.priority)")),
        st.tuples(counted, st.sampled_from(DOMAINS)).map(lambda two: f"count({two[0]}){two[1]}"),
    ]
    if where.normalize:
        made.append(_call("normalize", quantities("number", depth - 1, where)))
    if where.counters:
        made.append(_peers(depth).map(lambda text: f"node.pods.count({text})"))
    return made


def aggregates(unit: str, depth: int, where: Where = ROWS) -> Texts:
    """Aggregates over all nodes of a quantity of a unit."""
    plain = replace(where, peers=False, normalize=False)
    values = quantities(unit, depth - 1, plain).map(lambda text: f"greatest({text}, {NODE_LEAVES[unit]})")
    given = conditions(depth - 1, plain)
    some = st.tuples(given, values).map(lambda two: f"only({two[0]} or node.ready, {two[1]})")
    names = st.sampled_from(("sum", "avg", "min", "max"))
    three = st.tuples(names, st.one_of(values, some), st.sampled_from(DOMAINS))
    return three.map(lambda parts: f"{parts[0]}({parts[1]}){parts[2]}")


def _peers(depth: int) -> Texts:
    return conditions(depth - 1, Where(peers=True, counters=False))


def _sums(unit: str, depth: int) -> Texts:
    value = quantities(unit, depth - 1, Where(peers=True, counters=False))
    names = ("node.pods.sum", "node.pods.min", "node.pods.max")
    return st.one_of([call for name in names for call in (_call(name, value), _call(name, value, _peers(depth)))])


@functools.cache
def _comparisons(depth: int, where: Where) -> Texts:
    operators = st.sampled_from(("==", "!=", "<", "<=", ">", ">="))
    plain = replace(where, normalize=False)
    numbers = [
        st.tuples(quantities(u, depth - 1, plain), operators, quantities(u, depth - 1, plain)) for u in UNIT_LEAVES
    ]
    texts = st.tuples(strings(depth - 1, where), st.sampled_from(("==", "!=")), strings(depth - 1, where))
    ordered = st.tuples(versions(depth - 1, where), operators, versions(depth - 1, where))
    return st.one_of(*numbers, texts, ordered).map(lambda three: f"({' '.join(three)})")


@functools.cache
def _memberships(depth: int, where: Where) -> Texts:
    words = _several(st.sampled_from(WORDS).map(quoted), 1, 5).map(lambda items: f"[{', '.join(items)}]")
    split = st.sampled_from(SCALAR_STRINGS).map(lambda text: f'split({text}, "-")')
    numbers = _several(st.sampled_from(("0", "1", "-2.5", "500m", "2k")), 1, 5).map(lambda i: f"[{', '.join(i)}]")
    operators = st.sampled_from((" in ", " not in "))
    fields = st.sampled_from(("pod.images", "pod.claims"))
    texts = st.tuples(strings(depth - 1, where), operators, st.one_of(words, split, fields))
    values = st.tuples(quantities("number", depth - 1, replace(where, normalize=False)), operators, numbers)
    return st.one_of(texts, values).map(lambda three: f"({''.join(three)})")


@functools.cache
def conditions(depth: int, where: Where = ROWS) -> Texts:
    leaves = _leaves(CONDITION_LEAVES, PEER_CONDITIONS, where)
    if depth <= 0:
        return leaves
    inner, text = conditions(depth - 1, where), strings(depth - 1, where)
    anything: list[Texts] = [text, inner, quantities("number", depth - 1, where), versions(depth - 1, where)]
    made = [
        leaves,
        _comparisons(depth, where),
        _memberships(depth, where),
        inner.map(lambda operand: f"(not {operand})"),
        _join(" and ", inner),
        _join(" or ", inner),
        _join(" ?? ", inner),
        st.one_of(anything).map(lambda value: f"has({value})"),
        _call("starts_with", text, text),
        _call("ends_with", text, text),
        _call("contains", text, text),
        _call("glob", text, _pattern()),
        _call("if", inner, inner, inner),
        _call("only", inner, inner),
        _call("any", LISTS, ITEM_CONDITIONS),
        _call("all", LISTS, ITEM_CONDITIONS),
    ]
    if where.counters:
        made += [_call("node.pods.any", _peers(depth)), _call("node.pods.all", _peers(depth))]
    return st.one_of(made)


@functools.cache
def reducing(depth: int = 2) -> Texts:
    """Expressions that look at other rows: aggregates, counters, aggregates of counters."""
    peers, weights = _peers(depth), quantities("cpu", depth - 1, Where(peers=True, counters=False))
    counts = peers.map(lambda text: f"node.pods.count({text})")
    sums = st.one_of([_call(f"node.pods.{name}", weights, peers) for name in ("sum", "min", "max")])
    values = st.one_of(counts, sums.map(lambda text: f"({text} / 1000m)"), quantities("number", depth - 1).map(
        lambda text: f"greatest({text}, node.free.pods)"))  # fmt: skip
    names, domains = st.sampled_from(("sum", "avg", "min", "max")), st.sampled_from(DOMAINS)
    whole = st.tuples(names, values, domains).map(lambda three: f"{three[0]}({three[1]}){three[2]}")
    nested = st.tuples(names, whole, domains).map(lambda t: f"{t[0]}(node.free.pods - {t[1]}){t[2]}")
    return st.one_of(nested, whole, counts, sums, aggregates("number", depth), aggregates("cpu", depth))


@functools.cache
def anything() -> Texts:
    """Expressions of every sort; mapped, because `one_of` would melt the sorts together and forget the rare ones."""
    return st.one_of(reducing().map(str), expressions().map(str), conditions(2).map(str))


@functools.cache
def expressions(depth: int = 3) -> Texts:
    """Expressions of any type but lists; some use `normalize`."""
    return st.one_of(
        conditions(depth),
        strings(depth),
        versions(depth),
        *(quantities(unit, depth, SCORES if unit == "number" else ROWS) for unit in UNIT_LEAVES),
    )
