"""Twenty policies of five rules that apply to every pod, and an edit of one of them.

Three filters read node name, free memory and number of pods of the app on the node. Two scores read usage and zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
PATH = "/apis/policysched.io/v1beta1/schedulingpolicies"


def make(count: int) -> Iterator[Json]:
    """Yield `count` policies, each with its own constants."""
    for number in range(count):
        yield {
            "apiVersion": "policysched.io/v1beta1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": name(number)},
            "spec": _spec(number),
        }


def name(number: int) -> str:
    """Return the name of a policy."""
    return f"policy-{number:02}"


def _spec(number: int) -> Json:
    filters = (
        f'node.name != "absent-{number}"',
        f"node.free.memory - pod.requests.memory >= {number + 1}Mi",
        f'node.pods.count(peer.labels["app"] == pod.labels["app"]) < {50 + number}',
    )
    scores: tuple[Json, ...] = (
        {"value": f"scale(node.requested.cpu / node.allocatable.cpu, {100 + number}%, 0%)"},
        {"cases": [f'node.zone == "zone{number % 3 + 1}" → {60 + number}', f"else → {number}"]},
    )
    return {
        "schedulerNames": ["default-scheduler"],
        "filters": [{"name": f"filter-{place}", "require": text} for place, text in enumerate(filters)],
        "scores": [{"name": f"score-{place}", **score} for place, score in enumerate(scores)],
    }


def edit(turn: int) -> Json:
    """Return a merge patch that alternates the weight of a policy."""
    return {"spec": {"weight": 2 + turn % 2}}
