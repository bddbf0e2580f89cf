"""Pods that look at other pods: where they go, what they say while they wait, and what brings them back."""

from __future__ import annotations

from typing import Any

from tests.e2e.objects import Json, node, pod, unfit
from tests.e2e.schedulers import InProcess
from tests.e2e.server import Server

WHEN = "requiredDuringSchedulingIgnoredDuringExecution"
NEAR = "node(s) didn't match pod affinity rules"
AWAY = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"
WEB = {"app": "web"}


def term(labels: Json, key: str = "kubernetes.io/hostname", **fields: Any) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}} | fields


def near(*terms: Json) -> Json:
    return {"podAffinity": {WHEN: list(terms)}}


def away(*terms: Json) -> Json:
    return {"podAntiAffinity": {WHEN: list(terms)}}


def zoned(name: str, zone: str) -> Json:
    return node(name, labels={"topology.kubernetes.io/zone": zone})


async def test_a_pod_waits_for_the_pod_it_needs_and_joins_its_zone(server: Server, scheduler: InProcess) -> None:
    await server.load(zoned("a1", "a"), zoned("b1", "b"), zoned("b2", "b"))
    await server.load(pod("cache", affinity=near(term(WEB, "topology.kubernetes.io/zone"))))
    await server.turned_away("cache", unfit(3, f"3 {NEAR}"))
    await server.load(pod("web", labels=WEB, nodeName="b1"))
    assert (await server.placed("cache"))["cache"] in {"b1", "b2"}


async def test_the_first_of_a_group_is_placed_and_the_others_follow_it(server: Server, scheduler: InProcess) -> None:
    await server.load(zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), zoned("b2", "b"))
    together = near(term(WEB, "topology.kubernetes.io/zone"))
    names = [f"web-{number}" for number in range(6)]
    await server.load(*(pod(name, labels=WEB, affinity=together) for name in names))
    assert len({on[0] for on in (await server.placed(*names)).values()}) == 1


async def test_pods_that_repel_each_other_take_a_node_each_until_there_is_none(
    server: Server, scheduler: InProcess
) -> None:
    await server.load(node("n1"), node("n2"))
    await server.load(pod("a", labels=WEB, affinity=away(term(WEB))), pod("b", labels=WEB, affinity=away(term(WEB))))
    assert set((await server.placed("a", "b")).values()) == {"n1", "n2"}
    await server.load(pod("c", labels=WEB, affinity=away(term(WEB))), pod("d", labels=WEB))
    await server.turned_away("c", unfit(2, f"2 {AWAY}"))
    await server.turned_away("d", unfit(2, f"2 {REPELLED}"))
    await server.load(pod("plain"))
    await server.placed("plain")
    left = (await server.nodes_of(["a"]))["a"]
    await server.delete("Pod", "d")
    await server.delete("Pod", "a")
    assert await server.placed("c") == {"c": left}


async def test_a_new_node_is_a_place_for_a_pod_that_placed_pods_repel(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), pod("a", labels=WEB, affinity=away(term(WEB)), nodeName="n1"))
    await server.load(pod("b", labels=WEB))
    await server.turned_away("b", unfit(1, f"1 {REPELLED}"))
    await server.load(node("n2"))
    assert await server.placed("b") == {"b": "n2"}


async def test_a_namespace_that_gets_the_label_a_term_asks_for_brings_the_pod_back(
    server: Server, scheduler: InProcess
) -> None:
    await server.load(node("n1"), node("n2"))
    await server.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    await server.load(pod("web", labels=WEB, namespace="team", nodeName="n2"))
    await server.load(pod("cache", affinity=near(term(WEB, namespaceSelector={"matchLabels": {"tier": "gold"}}))))
    await server.turned_away("cache", unfit(2, f"2 {NEAR}"))
    await server.patch("Namespace", "team", {"metadata": {"labels": {"tier": "gold"}}})
    assert await server.placed("cache") == {"cache": "n2"}


async def test_preferences_of_the_pod_and_of_placed_pods_choose_the_node(server: Server, scheduler: InProcess) -> None:
    prefers = "preferredDuringSchedulingIgnoredDuringExecution"
    liked = [{"weight": 100, "podAffinityTerm": term(WEB)}]
    await server.load(*(node(f"n{number}") for number in range(4)))
    await server.load(pod("web", labels=WEB, nodeName="n2"))
    await server.load(pod("cache", labels={"app": "cache"}, affinity={"podAffinity": {prefers: liked}}))
    assert await server.placed("cache") == {"cache": "n2"}
    await server.delete("Pod", "web")
    await server.load(pod("other", labels=WEB))
    assert await server.placed("other") == {"other": "n2"}


async def test_match_label_keys_keep_apart_only_pods_of_the_same_revision(server: Server, scheduler: InProcess) -> None:
    def revision(name: str, number: str) -> Json:
        apart = away(term(WEB, matchLabelKeys=["revision"]))
        return pod(name, labels=WEB | {"revision": number}, affinity=apart)

    await server.load(node("n1"))
    await server.load(revision("old", "1"))
    await server.placed("old")
    await server.load(revision("new", "2"))
    await server.placed("new")
    await server.load(revision("newer", "2"))
    await server.turned_away("newer", unfit(1, f"1 {AWAY}"))
