"""Pods of two signatures, and the signature of a placed pod."""

from __future__ import annotations

from policysched.framework import Cluster
from policysched.model.objects import LabelSelector
from tests.plugins.inter_pod_affinity.build import away, term

WEB = {"app": "web"}
REPELLING = away(term(LabelSelector(match_labels=WEB)))


def signature(made: Cluster, name: str) -> int:
    return made.pods.by_id[f"default.{name}"].signature
