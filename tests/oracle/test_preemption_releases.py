"""What preemption does otherwise in one release than in another: budgets, and the message of a pod that does not fit.

Each case changes only by the field of the table of releases that it is listed with.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from policysched.model.release import RELEASES
from tests.controlplane.releases import RELEASES as BUILT
from tests.controlplane.releases import chosen

from .devices.things import claim, device_class, request
from .objects import case, container, node, pod
from .oracle import Oracle
from .preempted import differences, ours
from .test_preemption_verdicts import budget, placed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .oracle import Case

pytestmark = pytest.mark.oracle

MINORS = ("1.36", "1.37")
COMPARED = (*MINORS, "1.38") if chosen().minor == "1.38" else MINORS
ONLY_PREEMPTION = {"postFilter": {"disabled": [{"name": "DynamicResources"}]}}
ONLY_DEVICES = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}


def asked(*others: Any, plugins: Any, cpu: str = "4") -> Case:
    wanted = pod(priority=10, containers=[container(requests={"cpu": cpu})])
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    return case([node("a"), *others], wanted) | {"config": config, "preempt": True}


def shared_budget() -> Case:
    """Make two budgets of one pod, of which the second one selects another pod too."""
    first, second, third = (placed(name, "a", 5 - number, cpu="1") for number, name in enumerate("xyz"))
    first["metadata"]["labels"] = {"app": "web", "tier": "x"}
    second["metadata"]["labels"] = {"app": "web"}
    third["spec"]["priority"] = 9
    budgets = [budget("strict", {"matchLabels": {"tier": "x"}}), budget("web", {"matchLabels": {"app": "web"}}, 1)]
    return asked(first, second, third, *budgets, plugins=ONLY_PREEMPTION, cpu="2")


def empty_budget() -> Case:
    """Make two pods of which one is in a budget with an empty selector, in a namespace of its own."""
    kept, gone = placed("kept", "a", 1, cpu="2"), placed("gone", "a", 2, cpu="2", namespace="other")
    return asked(kept, gone, budget("all", {}), plugins=ONLY_PREEMPTION, cpu="2")


def equal_pods() -> Case:
    """Make two pods that differ by their UIDs only."""
    pods = [placed(name, "a", cpu="2", uid=uid) for name, uid in (("first", "2"), ("second", "1"))]
    return asked(*pods, plugins=ONLY_PREEMPTION, cpu="2")


def unstarted_pods() -> Case:
    """Make two pods of equal priority that have not started."""
    pods = [placed(name, "a", cpu="2") | {"status": {"phase": "Pending"}} for name in ("first", "second")]
    return asked(*pods, plugins=ONLY_PREEMPTION, cpu="2")


CASES = {
    "no_deallocation_is_reported": ("1.37", asked(placed("high", "a", 10), plugins=ONLY_DEVICES)),
    "preempted_node_is_reported": ("1.37", asked(placed("low", "a"), plugins=ONLY_PREEMPTION)),
    "budgets_stop_at_violation": ("1.37", shared_budget()),
    "empty_budget_selects_all": ("1.38", empty_budget()),
    "uid_breaks_ties": ("1.38", equal_pods()),
    "evicts_first_unstarted": ("1.37", unstarted_pods()),
}
"""By field, the first minor with the new rule, and a case; the oracle of a preview is asked if it is chosen."""


@pytest.fixture(scope="module")
def oracles() -> Iterator[dict[str, Oracle]]:
    with ExitStack() as stack:
        yield {minor: stack.enter_context(Oracle(BUILT[minor])) for minor in COMPARED}


@pytest.mark.parametrize("field", [field for field, (minor, _) in CASES.items() if minor in COMPARED])
def test_releases_differ_by_a_field_and_ours_equals_each(field: str, oracles: dict[str, Oracle]) -> None:
    new, given = CASES[field]
    old = COMPARED[COMPARED.index(new) - 1]
    theirs = {minor: oracles[minor].decide(given)["preemption"] for minor in (old, new)}
    assert differences(theirs[old], theirs[new])
    for minor, answer in theirs.items():
        assert differences(ours(given, release=RELEASES[minor]), answer) == []
    turned_back = replace(RELEASES[new], **{field: getattr(RELEASES[old], field)})
    assert differences(ours(given, release=turned_back), theirs[new])


def test_message_about_claims_that_stay_allocated_is_that_of_the_release(oracles: dict[str, Oracle]) -> None:
    given = asked(device_class(), claim(request()), plugins=ONLY_DEVICES)
    given["pod"] |= {"spec": {**given["pod"]["spec"], "resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}}
    theirs = {minor: oracles[minor].decide(given)["preemption"] for minor in MINORS}
    assert differences(theirs["1.36"], theirs["1.37"])
    for minor, answer in theirs.items():
        assert differences(ours(given, release=RELEASES[minor]), answer) == []


@pytest.mark.parametrize("plugins", [{}, ONLY_PREEMPTION, ONLY_DEVICES])
def test_message_of_a_pod_that_fits_nowhere_is_that_of_the_release(plugins: Any, oracles: dict[str, Oracle]) -> None:
    for others in ([placed("high", "a", 10)], [placed("low", "a", cpu="2"), placed("lower", "a", -1, cpu="2")], []):
        given = asked(*others, plugins=plugins, cpu="4" if others else "5")
        for minor in MINORS:
            answer = oracles[minor].decide(given)["preemption"]
            assert differences(ours(given, release=RELEASES[minor]), answer) == []
