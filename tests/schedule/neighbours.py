"""Pods of the random tests with affinity to each other, with few different labels, so that they often match."""

from __future__ import annotations

from random import Random

from policysched.model.objects import Affinity, LabelSelector, Pod, PodAffinity, PodAffinityTerm, Requirement
from tests.build import pod
from tests.plugins.inter_pod_affinity.build import away, near, term, weighted

TEAM_A, ANY = LabelSelector(match_labels={"team": "a"}), LabelSelector()
NOT_B = LabelSelector(match_expressions=(Requirement(key="team", operator="NotIn", values=("b",)),))
GOLD = LabelSelector(match_labels={"tier": "gold"})
LONELY = LabelSelector(match_labels={"app": "lonely"})


def weighing(likes: dict[int, PodAffinityTerm], dislikes: dict[int, PodAffinityTerm]) -> Affinity:
    return Affinity(pod_affinity=_preferring(likes), pod_anti_affinity=_preferring(dislikes))


def _preferring(terms: dict[int, PodAffinityTerm]) -> PodAffinity:
    return PodAffinity(preferred=[weighted(weight, one) for weight, one in terms.items()])


def some_affinity(chance: Random, *, calm: bool) -> Affinity:
    """Return the affinity of a placed pod; if `calm`, no term has a namespace selector."""
    of = GOLD if not calm and chance.random() < 0.3 else None
    one = term(chance.choice((TEAM_A, NOT_B, LONELY)), chance.choice(("zone", "disk", "cores")), of=of)
    return chance.choice(
        (
            away(term(LONELY, "zone")),
            away(term(LONELY, "disk", "a", "b", of=of)),
            near(one),
            weighing({chance.choice((1, 40)): one}, {}),
            weighing({}, {chance.choice((1, 40)): one}),
        )
    )


def neighbourly(*, calm: bool) -> list[Pod]:
    """Return pods to decide, each of which represents its class."""
    of = None if calm else GOLD
    team = {"team": "a"}
    both = weighing({10: term(TEAM_A), 3: term(NOT_B, "disk")}, {7: term(ANY, "cores", "a", "default")})
    return [
        pod("near", labels=team, affinity=near(term(TEAM_A))),
        pod("first", labels=team, affinity=near(term(LabelSelector(match_labels={"app": "group"}), "disk"))),
        pod("grouped", labels={"app": "group"}, affinity=near(term(LabelSelector(match_labels={"app": "group"})))),
        pod("away", labels=team, affinity=away(term(LabelSelector(match_labels={"app": "far"}), "cores"))),
        pod("far", labels={"app": "far"}, affinity=away(term(LabelSelector(match_labels={"app": "far"}), "zone"))),
        pod("liking", labels=team, affinity=both),
        pod("abroad", namespace="b", labels=team, affinity=near(term(NOT_B, "disk", of=of), term(ANY, "zone", "a"))),
        pod("named", namespace="a", labels={"app": "lonely"}, affinity=weighing({5: term(NOT_B, "disk", of=of)}, {})),
    ]
