"""Topology domains: one number a value of a label, and what tells that rows changed theirs."""

from __future__ import annotations

import gc

import numpy as np

from policysched.framework import Cluster
from policysched.state.tables import journal, sparse
from policysched.state.tables.columns import FIRST_CAPACITY
from policysched.state.tables.domains import NO_DOMAIN, Domains
from tests.build import cluster, node, pod


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
    version = held.stamp
    made.set_node(node("a", labels={"zone": "x", "other": "z"}))
    assert of(made).stamp == version
    made.set_node(node("a", labels={"zone": "y"}))
    assert of(made).stamp > version
    assert numbers(made)["a"] == numbers(made)["b"]
    version = of(made).stamp
    made.remove_node("a")
    assert of(made).stamp > version


def test_a_label_is_known_to_tell_all_rows_apart_as_long_as_it_does() -> None:
    made = cluster(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}), node("c"), node("d"))
    held = of(made)
    alone = [held.alone]
    made.set_node(node("b", labels={"zone": "x"}))
    held.refresh()
    alone.append(held.alone)
    made.remove_node("a")
    held.refresh()
    alone.append(held.alone)
    assert alone == [True, False, True]


def test_a_label_that_no_row_has_tells_all_rows_apart() -> None:
    assert of(cluster(node("a"), node("b")), "absent").alone
    assert of(Cluster()).alone


def zone(name: str, value: str | None = None) -> object:
    return node(name, labels={} if value is None else {"zone": value})


def groups(made: Cluster, found: Domains) -> list[set[str]]:
    """The names of nodes by domain, those without one apart."""
    found.refresh()
    by_number: dict[int, set[str]] = {}
    for name, row in made.nodes.row_of.items():
        by_number.setdefault(int(found.of_row[row]), set()).add(name)
    assert all(number < found.count for number in by_number)
    lost = by_number.pop(NO_DOMAIN, set())
    return [lost, *sorted(by_number.values(), key=sorted)]


def three() -> Cluster:
    return cluster(zone("a", "1"), zone("b", "2"), zone("c", "1"), zone("d"))  # type: ignore[arg-type]


def test_rows_of_one_value_share_a_number() -> None:
    made = three()
    assert groups(made, made.domains.of("zone")) == [{"d"}, {"a", "c"}, {"b"}]
    assert made.domains.of("absent").count == 1


def test_changed_labels_move_rows_and_leave_the_others_numbers() -> None:
    made = three()
    found = made.domains.of("zone")
    before = (found.numbers_stamp, int(found.of_row[made.nodes.row_of["b"]]))
    made.set_node(zone("a", "3"))  # type: ignore[arg-type]
    made.set_node(zone("d", "2"))  # type: ignore[arg-type]
    made.remove_node("c")
    assert groups(made, found) == [set(), {"a"}, {"b", "d"}]
    assert (found.numbers_stamp, int(found.of_row[made.nodes.row_of["b"]])) == before


def test_placements_change_nothing() -> None:
    made = three()
    found = made.domains.of("zone")
    before = found.of_row.copy()
    made.set_pod(pod("p", on="a"))
    found.refresh()
    assert (found.of_row == before).all()


def test_new_rows_are_numbered_and_growth_numbers_all_anew() -> None:
    made = three()
    found = made.domains.of("zone")
    for index in range(FIRST_CAPACITY + 1):
        made.set_node(zone(f"n{index}", "1"))  # type: ignore[arg-type]
    found.refresh()
    assert found.of_row.size == made.nodes.columns.capacity
    assert len(groups(made, found)[1]) == FIRST_CAPACITY + 3


def test_what_fell_out_of_the_journal_is_looked_up_anew() -> None:
    made = three()
    found = made.domains.of("zone")
    made.set_node(zone("a", "2"))  # type: ignore[arg-type]
    for _ in range(journal.RING):
        made.journal.note(0, journal.Aspect.USAGE)
    before = found.numbers_stamp
    assert groups(made, found) == [{"d"}, {"a", "b"}, {"c"}]
    assert found.numbers_stamp == before + 1


def test_numbers_of_values_that_are_gone_are_given_out_anew() -> None:
    made = three()
    found = made.domains.of("zone")
    before = found.numbers_stamp
    for index in range(sparse.SPARE + 2 * made.nodes.count):
        made.set_node(zone("a", f"new-{index}"))  # type: ignore[arg-type]
        found.refresh()
    assert found.numbers_stamp > before
    assert found.count < sparse.SPARE
    assert groups(made, found) == [{"d"}, {"a"}, {"b"}, {"c"}]


def test_a_value_that_no_node_has_can_be_numbered() -> None:
    made = three()
    found = made.domains.of("zone")
    assert found.number("") == found.count - 1 == 3
    made.set_node(zone("d", ""))  # type: ignore[arg-type]
    found.refresh()
    assert found.of_row[made.nodes.row_of["d"]] == 3


def test_domains_are_shared_and_live_as_long_as_somebody_holds_them() -> None:
    made = three()
    found = made.domains.of("zone")
    assert made.domains.of("zone") is found
    assert len(made.domains) == 1
    del found
    gc.collect()
    assert len(made.domains) == 0


def rows_in(made: Cluster, *values: str) -> list[int]:
    held = of(made)
    wanted = [held.number(value) if value else NO_DOMAIN for value in values]
    chosen = np.zeros(held.count, np.bool_)
    chosen[wanted] = True
    found: list[int] = held.rows_in(chosen).tolist()
    return found


def test_rows_are_found_by_their_domains() -> None:
    made = cluster(*(node(f"n{index}", labels={"zone": "xyz"[index % 3]} if index != 5 else {}) for index in range(9)))
    assert rows_in(made) == []
    assert rows_in(made, "x") == [0, 3, 6]
    assert rows_in(made, "z", "y") == [1, 2, 4, 7, 8]
    assert rows_in(made, "") == [5]
    made.set_node(node("n0", labels={"zone": "y"}))
    assert rows_in(made, "x") == [3, 6]
    made.set_pod(pod("early", on="unknown"))
    assert rows_in(made, "") == [5, 9]


def test_the_version_moves_when_a_value_is_numbered_that_no_node_has() -> None:
    made = cluster(node("a", labels={"zone": "x"}))
    held = of(made)
    version, count = held.stamp, held.count
    held.number("x")
    assert held.stamp == version
    held.number("y")
    assert held.stamp > version
    assert held.count == count + 1
