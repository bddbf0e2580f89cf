"""Pods of two kinds, and the kind of a placed pod."""

from __future__ import annotations

from policysched.framework import Cluster
from policysched.model.objects import Affinity, LabelSelector, PodAffinity, PodAffinityTerm

WEB = {"app": "web"}
REPELLING = Affinity(
    pod_anti_affinity=PodAffinity(
        required=[PodAffinityTerm(label_selector=LabelSelector(match_labels=WEB), topology_key="zone")]
    )
)


def kind(made: Cluster, name: str) -> int:
    return made.pods.by_id[f"default.{name}"].kind
