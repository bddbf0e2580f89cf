"""Sets of rows as numbers, and rows parted by many of them."""

from __future__ import annotations

import random

import pytest

from policysched.devices.inventory.row_bits import Parted, bits_of, rows_of


@pytest.mark.parametrize("rows", [[], [0], [3, 200], [7, 8, 9], list(range(5, 40, 3)), list(range(3000))])
def test_rows_become_a_number_and_back(rows: list[int]) -> None:
    assert bits_of(rows) == sum(1 << row for row in rows)
    assert rows_of(bits_of(rows)) == rows
    assert bits_of(dict.fromkeys(rows).keys()) == bits_of(rows)


@pytest.mark.parametrize("at_once", [1, 200, 1 << 22])
@pytest.mark.parametrize("seed", range(30))
def test_rows_of_a_part_are_in_the_same_sets(seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.devices.inventory.row_bits._AT_ONCE", at_once)
    rng = random.Random(seed)
    size = rng.choice((1, 9, 70, 300))
    rows = bits_of([row for row in range(size) if rng.random() < 0.8])
    sets = [rng.getrandbits(size) for _ in range(rng.choice((0, 1, 3, 9, 20)))]
    sets += [bits_of(rng.sample(range(size), rng.randrange(min(size, 5)))) for _ in range(rng.choice((0, 10)))]
    sets += [~one & ((1 << size + 3) - 1) for one in sets[:4]]
    rng.shuffle(sets)
    parted = Parted(rows, sets)
    found = {}
    for part, otherwise in parted.parts:
        assert part
        for row in rows_of(part):
            assert row not in found
            found[row] = set(parted.mostly) ^ set(otherwise)
            assert len(set(otherwise)) == len(otherwise)
    assert found == {row: {place for place, one in enumerate(sets) if one >> row & 1} for row in rows_of(rows)}
