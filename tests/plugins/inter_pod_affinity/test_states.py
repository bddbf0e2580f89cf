"""What InterPodAffinity keeps between decisions: which rows a change reaches, and that nothing is missed."""

from __future__ import annotations

import weakref
from random import Random
from typing import Any

import pytest

from policysched.framework import Cluster
from policysched.model.objects import Pod
from policysched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from policysched.schedule.cycle.engine import Engine
from tests.build import node, pod
from tests.plugins.inter_pod_affinity.build import away, dislikes, joined, label, likes, near, nodes, scene, term
from tests.schedule.parts import profile

APP, FAR = label("app", "web"), label("app", "far")
WEB = {"app": "web"}
ZONES = nodes(
    a={"zone": "x", "host": "a"},
    b={"zone": "x", "host": "b"},
    c={"zone": "y", "host": "c"},
    d={"zone": "z", "host": "d"},
    e={"zone": "w", "host": "e"},
)


class Asking(InterPodAffinity):
    """The plugin, which remembers the rows that it is asked about."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.asked: list[tuple[str, list[str]]] = []
        self.names: list[str] = []

    def filter(self, state: Any, rows: Any) -> Any:
        self._note("filter", rows)
        return super().filter(state, rows)

    def score(self, state: Any, rows: Any) -> Any:
        self._note("score", rows)
        return super().score(state, rows)

    def _note(self, what: str, rows: Any) -> None:
        numbers = range(len(self.names))[rows] if isinstance(rows, slice) else rows.tolist()
        self.asked.append((what, sorted({self.names[row] for row in numbers})))


def asked(incoming: Pod, made: Cluster, change: Any) -> list[tuple[str, list[str]]]:
    """The rows that the plugin is asked about once more because of a change."""
    plugin = Asking()
    plugin.names = made.nodes.names
    live = Engine(made, profile([plugin], [(plugin, 1)]), Random(0))
    live.decide(incoming)
    plugin.asked.clear()
    change()
    live.decide(incoming)
    return plugin.asked


def webs(count: int, on: str) -> list[Pod]:
    return [pod(f"web-{on}-{number}", on=on, labels=WEB) for number in range(count)]


EVERY = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("affinity", "placed", "on", "expected"),
    [
        (near(term(APP)), webs(1, "a"), "b", []),
        (near(term(APP)), webs(1, "a"), "c", [("filter", ["c"])]),
        (away(term(APP)), webs(1, "a"), "b", []),
        (away(term(APP)), webs(1, "c"), "b", [("filter", ["a", "b"])]),
        (away(term(APP, "host")), webs(1, "a"), "c", [("filter", ["c"])]),
        (away(term(FAR)), [], "a", []),
        (near(term(FAR)), [], "a", []),
        (likes(1, term(APP)), webs(1, "a"), "c", [("score", EVERY)]),
        (joined(likes(1, term(APP)), likes(1, term(APP, "host"))), webs(1, "a"), "c", [("score", EVERY)]),
        (likes(1, term(APP, "host")), webs(1, "a"), "c", [("score", ["c"])]),
        (dislikes(1, term(FAR)), webs(1, "a"), "c", []),
        (None, [], "c", []),
    ],
)
def test_a_placement_asks_again_only_where_it_changes_an_answer(
    affinity: Any, placed: list[Pod], on: str, expected: list[Any]
) -> None:
    made = scene(*ZONES, pod("other", on="a", labels={"app": "x"}, affinity=away(term(label("app", "y")))), *placed)
    assert asked(pod(affinity=affinity), made, lambda: made.set_pod(pod("new", on=on, labels=WEB))) == expected


def test_the_first_of_a_group_opens_or_closes_all_other_domains() -> None:
    made = scene(*ZONES)
    incoming = pod(labels=WEB, affinity=near(term(APP)))
    placement = asked(incoming, made, lambda: made.set_pod(pod("new", on="c", labels=WEB)))
    assert placement == [("filter", EVERY)]
    assert asked(incoming, made, lambda: made.remove_pod("default.new")) == [("filter", EVERY)]


def rejected(incoming: Pod, made: Cluster, change: Any) -> tuple[set[str], set[str]]:
    """The nodes that are rejected before and after a change, by one engine."""
    plugin = InterPodAffinity()
    live = Engine(made, profile([plugin], [(plugin, 1)]), Random(0))
    found = []
    for step in (lambda: None, change):
        step()
        first = live.decide(incoming).evaluation.first
        found.append({name for name, row in made.nodes.row_of.items() if first[row] > 0})
    return found[0], found[1]


def test_a_node_that_joins_without_any_label_is_judged() -> None:
    made = scene(*ZONES, *webs(1, "a"))
    joins = rejected(pod(affinity=near(term(APP))), made, lambda: made.set_node(node("bare")))
    assert joins == ({"c", "d", "e"}, {"c", "d", "e", "bare"})


def test_new_statements_of_placed_pods_concern_classes_that_are_known_already() -> None:
    made = scene(*ZONES, pod("other", on="a", affinity=away(term(FAR))))
    repels = pod("new", on="b", affinity=away(term(APP)))
    assert rejected(pod(labels=WEB), made, lambda: made.set_pod(repels)) == (set(), {"a", "b"})
    assert rejected(pod(labels=WEB), made, lambda: made.remove_pod("default.new")) == ({"a", "b"}, set())


def test_a_shared_host_name_that_comes_and_goes_is_followed() -> None:
    made = scene(*ZONES, *webs(1, "a"))
    incoming = pod(affinity=away(term(APP, "host")))
    shares = rejected(incoming, made, lambda: made.set_node(node("c", labels={"host": "a"})))
    assert shares == ({"a"}, {"a", "c"})
    assert rejected(incoming, made, lambda: made.set_node(node("c", labels={"host": "c"}))) == ({"a", "c"}, {"a"})


def test_numbers_of_domains_given_out_to_others_do_no_harm() -> None:
    made = scene(*ZONES, *webs(1, "a"))
    held = made.domains.of("zone")

    def change() -> None:
        held.number("absent")
        made.set_pod(pod("new", on="c", labels=WEB))

    assert rejected(pod(affinity=near(term(APP))), made, change) == ({"c", "d", "e"}, {"d", "e"})


def test_the_cluster_is_free_to_go_while_the_plugin_stays() -> None:
    plugin = InterPodAffinity()
    around = scene(*ZONES, *webs(1, "a"))
    plugin.prepare_filter(pod(affinity=near(term(APP))), around)
    held = weakref.ref(around)
    del around
    assert held() is None
