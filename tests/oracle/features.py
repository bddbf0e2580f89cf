"""What a generated case is about, read off its objects, and how often that bites.

Knows nothing of how cases are generated: what counts is what a case has, not what it was meant to have.
A feature belongs to the plugin that reads it, and bites where that plugin rejects a node or tells nodes
apart by its scores.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Thing: TypeAlias = dict[str, Any]
Feature: TypeAlias = tuple[str, str]

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
PEERS, SPREAD = "InterPodAffinity", "PodTopologySpread"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OPERATORS = {"In", "NotIn", "Exists", "DoesNotExist"}


def features(case: Thing) -> set[Feature]:
    """List what a case with one pod has, by plugin; the empty feature stands for the plugin itself."""
    profile = case["config"]["profiles"][0]
    off = {entry["name"] for entry in profile["plugins"]["multiPoint"]["disabled"]}
    off |= {PEERS, SPREAD} if "*" in off else set()
    found: set[Feature] = set()
    for plugin, of_plugin in ((PEERS, _peers), (SPREAD, _spread)):
        if plugin not in off and (names := set(of_plugin(case))):
            names |= {*_arguments(profile, plugin), *_surroundings(case)}
            found |= {(plugin, name) for name in names} | {(plugin, "")}
    return found


def _peers(case: Thing) -> Iterator[str]:
    pod = case["pod"]
    for kind, term in terms(pod):
        yield f"pod's {kind}"
        yield from _of_term(term)
        if kind == "required affinity" and _is_like(pod, term):
            yield "pod's required affinity to its own like"
    for other in _placed(case):
        for kind, term in terms(other):
            yield f"placed pods' {kind}"
            if _unparsable_term(term):
                yield "placed pods' selector that cannot be parsed"


def _placed(case: Thing) -> Iterator[Thing]:
    return (one for one in case["objects"] if one["kind"] == "Pod")


def _is_like(pod: Thing, term: Thing) -> bool:
    return bool((term.get("labelSelector") or {}).get("matchLabels") == pod["metadata"]["labels"])


def terms(pod: Thing) -> Iterator[tuple[str, Thing]]:
    """Yield the affinity terms of a pod, each with its kind."""
    affinity = pod["spec"].get("affinity") or {}
    for field, kind in (("podAffinity", "affinity"), ("podAntiAffinity", "anti-affinity")):
        rules = affinity.get(field) or {}
        for term in rules.get(REQUIRED) or ():
            yield f"required {kind}", term
        for weighted in rules.get(PREFERRED) or ():
            yield f"preferred {kind}", weighted["podAffinityTerm"]


TERM_FEATURES: dict[str, Callable[[Thing], bool]] = {
    "no topology key": lambda term: not term["topologyKey"],
    "nil selector": lambda term: "labelSelector" not in term,
    "{} selector": lambda term: term.get("labelSelector") == {},
    "match or mismatch label keys": lambda term: bool({"matchLabelKeys", "mismatchLabelKeys"} & set(term)),
    "namespaces": lambda term: "namespaces" in term,
    "{} namespace selector": lambda term: term.get("namespaceSelector") == {},
    "namespace selector": lambda term: bool(term.get("namespaceSelector")),
}


def _of_term(term: Thing) -> Iterator[str]:
    yield from (name for name, holds in TERM_FEATURES.items() if holds(term))
    if _unparsable_term(term):
        yield "selector that cannot be parsed"


def _unparsable_term(term: Thing) -> bool:
    return _unparsable(term.get("labelSelector")) or _unparsable(term.get("namespaceSelector"))


def _unparsable(selector: Thing | None) -> bool:
    expressions = (selector or {}).get("matchExpressions", ())
    return any(
        one["operator"] not in OPERATORS
        or bool(one.get("values")) != (one["operator"] in {"In", "NotIn"})
        or "not a" in one["key"] + "".join(one.get("values", ()))
        for one in expressions
    )


def _spread(case: Thing) -> Iterator[str]:
    constraints = case["pod"]["spec"].get("topologySpreadConstraints") or ()
    for one in constraints:
        yield one["whenUnsatisfiable"]
        yield from (name for name, holds in CONSTRAINT_FEATURES.items() if holds(one))
        if _unparsable(one.get("labelSelector")):
            yield "selector that cannot be parsed"
    if len(constraints) > 1:
        yield "several constraints"
    if not constraints:
        yield from _defaults(case)


CONSTRAINT_FEATURES: dict[str, Callable[[Thing], bool]] = {
    "no topology key": lambda one: not one["topologyKey"],
    "nil selector": lambda one: "labelSelector" not in one,
    "{} selector": lambda one: one.get("labelSelector") == {},
    "matchLabelKeys": lambda one: "matchLabelKeys" in one,
    "minDomains": lambda one: "minDomains" in one,
    "nodeAffinityPolicy: Ignore": lambda one: one.get("nodeAffinityPolicy") == "Ignore",
    "nodeTaintsPolicy: Honor": lambda one: one.get("nodeTaintsPolicy") == "Honor",
}


def _defaults(case: Thing) -> Iterator[str]:
    """Tell where a pod without constraints may get default ones from."""
    owners = {(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in case["objects"]}
    services = sum(kind == "Service" for _, kind, _ in owners)
    if services:
        yield "one Service" if services == 1 else "several Services"
    for owner in case["pod"]["metadata"].get("ownerReferences", ()):
        if not owner["controller"]:
            yield "owner that does not control"
        elif (owner["apiVersion"], owner["kind"], owner["name"]) in owners:
            yield f"owner: {owner['kind']}"
        else:
            yield "owner that is gone or of another version or kind"


def _surroundings(case: Thing) -> Iterator[str]:
    """Tell what is unusual about the cluster."""
    namespaces = {one["metadata"]["name"] for one in case["objects"] if one["kind"] == "Namespace"}
    if case["pod"]["metadata"]["namespace"] not in namespaces:
        yield "pod's namespace is gone"
    if any("deletionTimestamp" in one["metadata"] for one in _placed(case)):
        yield "terminating pods"
    if any(one["status"]["phase"] in {"Succeeded", "Failed"} for one in _placed(case)):
        yield "finished pods"
    labels = [one["metadata"]["labels"] for one in case["objects"] if one["kind"] == "Node"]
    hosts = [found[HOST] for found in labels if HOST in found]
    if len(set(hosts)) < len(hosts):
        yield "shared host names"
    if any(key not in found for key in (ZONE, HOST) for found in labels):
        yield "nodes without zone or host name"
    if any(found.get(ZONE) == "" for found in labels):
        yield "empty zone"


def _arguments(profile: Thing, plugin: str) -> Iterator[str]:
    for entry in profile.get("pluginConfig", ()):
        if entry["name"] == plugin:
            yield from (f"args: {key}" for key in entry["args"] if key not in {"apiVersion", "kind"})


class Bites:
    """Counts the cases with a feature, and those in which its plugin rejected a node or told nodes apart."""

    def __init__(self) -> None:
        self.cases: Counter[Feature] = Counter()
        self.rejected: Counter[Feature] = Counter()
        self.scored: Counter[Feature] = Counter()

    def count(self, found: set[Feature], rejectors: Iterable[str], scorers: Iterable[str]) -> None:
        """Count one case by its features and the plugins that had something to say."""
        self.cases.update(found)
        self.rejected.update(one for one in found if one[0] in rejectors)
        self.scored.update(one for one in found if one[0] in scorers)

    def table(self) -> str:
        """Lay out the counts as text."""
        lines = [f"{'feature':70} {'cases':>8} {'rejected':>8} {'scored':>8}"]
        for feature in sorted(self.cases):
            name = f"{feature[0]} {feature[1]}".strip()
            counts = (self.cases[feature], self.rejected[feature], self.scored[feature])
            lines.append(f"{name:70} " + " ".join(f"{count:8}" for count in counts))
        return "\n".join(lines)
