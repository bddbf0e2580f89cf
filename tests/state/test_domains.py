"""Topology domains: one number a value of a label, and what tells that rows changed theirs."""

from __future__ import annotations

from policysched.framework import Cluster
from policysched.state.domains import NO_DOMAIN, Domains
from tests.build import cluster, node


def of(made: Cluster, key: str = "zone") -> Domains:
    return made.domains.of(key)


def numbers(made: Cluster) -> dict[str, int]:
    found = of(made)
    return {name: int(found.of_row[row]) for name, row in made.nodes.row_of.items()}


def test_rows_of_one_value_share_a_number_and_rows_without_the_label_have_none() -> None:
    made = cluster(
        node("a", labels={"zone": "x"}), node("b", labels={"zone": "x"}), node("c", labels={"zone": "y"}), node("d")
    )
    found = numbers(made)
    assert found["a"] == found["b"] != found["c"]
    assert found["d"] == NO_DOMAIN


def test_the_version_moves_when_a_row_changes_its_domain_and_only_then() -> None:
    made = cluster(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}))
    held = of(made)
    version = held.version
    made.set_node(node("a", labels={"zone": "x", "other": "z"}))
    assert of(made).version == version
    made.set_node(node("a", labels={"zone": "y"}))
    assert of(made).version > version
    assert numbers(made)["a"] == numbers(made)["b"]
    version = of(made).version
    made.remove_node("a")
    assert of(made).version > version


def test_a_label_is_known_to_tell_all_rows_apart_as_long_as_it_does() -> None:
    made = cluster(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}), node("c"), node("d"))
    held = of(made)
    assert held.alone
    made.set_node(node("b", labels={"zone": "x"}))
    held.refresh()
    assert not held.alone
    made.remove_node("a")
    held.refresh()
    assert held.alone


def test_a_label_that_no_row_has_tells_all_rows_apart() -> None:
    assert of(cluster(node("a"), node("b")), "absent").alone
    assert of(Cluster()).alone
