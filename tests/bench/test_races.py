"""The bench of two schedulers on the same nodes counts double bookings as a kubelet would find them."""

from __future__ import annotations

import pytest

from bench.cluster.workloads import KUBE, OURS
from bench.races import PLACES, Bookings, measure_all, standing


def test_a_binding_to_a_full_node_is_a_double_booking_until_a_place_is_free() -> None:
    bookings = Bookings(places=2)
    assert [bookings.take("MODIFIED", name, "n1") for name in ("a", "b", "c", "c")] == [False, False, True, False]
    assert not bookings.take("ADDED", "pending", "")
    bookings.take("DELETED", "c", "n1")  # it never had a place
    assert bookings.take("MODIFIED", "d", "n1")
    bookings.take("DELETED", "a", "n1")
    assert not bookings.take("MODIFIED", "e", "n1")
    assert (bookings.double, bookings.placed) == ({"c", "d"}, {"b": "n1", "e": "n1"})


def test_the_oldest_placed_pods_are_deleted_until_few_enough_stay() -> None:
    bookings = Bookings(places=9)
    for name in ("a", "b", "c", "d"):
        bookings.take("ADDED", name, "n1")
    bookings.take("DELETED", "a", "n1")
    assert [bookings.leave(1) for _ in range(3)] == ["b", "c", None]
    bookings.take("DELETED", "b", "n1")
    assert bookings.leave(1) is None


def test_standing_pods_leave_places_free_on_every_node() -> None:
    objects = [*standing(20)]
    nodes = [one["spec"]["nodeName"] for one in objects if one["kind"] == "Pod"]
    assert len(nodes) == 190
    assert max(map(nodes.count, set(nodes))) == PLACES


@pytest.mark.controlplane
def test_one_scheduler_double_books_nothing_and_two_schedulers_place_all_pods() -> None:
    [alone, both] = measure_all([[OURS], [OURS, KUBE]], [50], nodes=10, seconds=0.8)
    assert (alone.bound, alone.double) == (40, 0)
    assert both.bound == 40
    assert sum(both.by_scheduler) == both.double
