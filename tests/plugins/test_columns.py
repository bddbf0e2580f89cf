"""What column plugins share: values of a mask, which numbers occur, which rows have labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysched.plugins.columns import PresentNumbers, levelled
from policysched.plugins.pod_topology_spread.rows import Labelled
from tests.build import cluster, node, pod

MASKED = st.lists(st.tuples(st.integers(-9, 9), st.booleans()), min_size=1, max_size=20)


@given(MASKED)
def test_levelled_values_have_the_lowest_and_highest_of_their_mask(rows: list[tuple[int, bool]]) -> None:
    values, mask = np.array([value for value, _ in rows]), np.array([chosen for _, chosen in rows])
    before = values.copy()
    made = levelled(values, mask)
    assert set(made.tolist()) == set(values[mask].tolist())
    assert made.size == (values.size if mask.any() else 0)
    assert (values == before).all()


@given(MASKED)
def test_numbers_that_occur_are_found(rows: list[tuple[int, bool]]) -> None:
    numbers, mask = np.array([abs(value) for value, _ in rows]), np.array([chosen for _, chosen in rows])
    assert PresentNumbers().among(numbers, 0, mask).tolist() == sorted(set(numbers[mask].tolist()))


def test_numbers_that_occur_are_looked_for_again_when_they_or_the_mask_change() -> None:
    present, numbers = PresentNumbers(), np.array([1, 2, 3, 0])
    both, last = np.array([True, True, False]), np.array([False, False, True])
    assert present.among(numbers, 0, both).tolist() == [1, 2]
    assert present.among(numbers, 0, last).tolist() == [3]
    numbers[2] = 5
    assert present.among(numbers, 0, last).tolist() == [3]
    assert present.among(numbers, 1, last).tolist() == [5]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [((), None), (("zone",), [True, True, False]), (("zone", "disk"), [True, False, False]), (("host",), None)],
)
def test_rows_with_all_labels(keys: tuple[str, ...], expected: list[bool] | None) -> None:
    made = cluster(
        node("a", labels={"host": "a", "zone": "x", "disk": "ssd"}),
        node("b", labels={"host": "b", "zone": "y"}),
        node("c", labels={"host": "c"}),
    )
    mask = Labelled(keys, made).mask()
    assert (None if mask is None else mask.tolist()) == expected


def test_rows_with_a_label_are_looked_for_again_when_nodes_or_rows_change() -> None:
    made = cluster(node("a", labels={"zone": "x"}))
    labelled = Labelled(("zone",), made)
    assert labelled.mask() is None
    made.set_pod(pod("early", on="unknown"))
    mask = labelled.mask()
    assert mask is not None
    assert mask.tolist() == [True, False]
    made.set_node(node("unknown", labels={"zone": "y"}))
    assert labelled.mask() is None
