"""Pods that look at other pods, written as short as the tables about them allow."""

from __future__ import annotations

from collections.abc import Mapping

from policysched.framework import Cluster
from policysched.model.objects import (
    Affinity,
    LabelSelector,
    Metadata,
    Namespace,
    Node,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Requirement,
    WeightedPodAffinityTerm,
)
from tests.build import cluster, node

TEAMS = {"one-a": "one", "one-b": "one", "two-a": "two", "two-b": "two"}
"""Namespaces by their label `team`."""


def label(key: str, *values: str, operator: str = "") -> LabelSelector:
    """A selector of one expression: In the values, or that the label exists."""
    return LabelSelector(
        match_expressions=(Requirement(key=key, operator=operator or ("In" if values else "Exists"), values=values),)
    )


def both(*selectors: LabelSelector) -> LabelSelector:
    """A selector that asks for all that these ask for."""
    return LabelSelector(match_expressions=tuple(one for each in selectors for one in each.match_expressions))


def team(name: str) -> LabelSelector:
    return label("team", name)


def term(
    selector: LabelSelector | None,
    key: str = "zone",
    *namespaces: str,
    of: LabelSelector | None = None,
) -> PodAffinityTerm:
    """A term; `of` selects namespaces by their labels."""
    return PodAffinityTerm(
        label_selector=selector, topology_key=key, namespaces=tuple(namespaces), namespace_selector=of
    )


def near(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(required=list(terms)))


def away(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(required=list(terms)))


def weighted(weight: int, one: PodAffinityTerm) -> WeightedPodAffinityTerm:
    return WeightedPodAffinityTerm(weight=weight, pod_affinity_term=one)


def likes(weight: int, one: PodAffinityTerm) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(preferred=[weighted(weight, one)]))


def dislikes(weight: int, one: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(preferred=[weighted(weight, one)]))


def joined(*parts: Affinity) -> Affinity:
    """One affinity that states what all of these state."""
    sides = []
    for side in ("pod_affinity", "pod_anti_affinity"):
        stated = [found for part in parts if (found := getattr(part, side)) is not None]
        sides.append(
            PodAffinity(
                required=[one for each in stated for one in each.required],
                preferred=[one for each in stated for one in each.preferred],
            )
        )
    return Affinity(pod_affinity=sides[0], pod_anti_affinity=sides[1])


def nodes(**labels: Mapping[str, str]) -> list[Node]:
    """Nodes by name with their labels."""
    return [node(name, labels=found) for name, found in labels.items()]


def scene(*objects: Node | Pod) -> Cluster:
    """A cluster of these nodes and placed pods, with the namespaces of two teams."""
    made = cluster(*objects)
    for name, of in TEAMS.items():
        made.set_namespace(Namespace(metadata=Metadata(name=name, labels={"team": of})))
    return made
