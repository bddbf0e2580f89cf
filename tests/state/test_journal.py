from __future__ import annotations

import numpy as np
import pytest

from policysched.state.tables.journal import RING, Aspect, Journal


def noted(journal: Journal, position: int) -> list[tuple[int, int]] | None:
    found = journal.since(position)
    return None if found is None else list(zip(found[0].tolist(), found[1].tolist(), strict=True))


def test_since_gives_what_was_noted_later_in_order() -> None:
    journal = Journal()
    journal.note(3, Aspect.LABELS)
    position = journal.position
    journal.note(4, Aspect.USAGE | Aspect.PODS)
    journal.note(3, Aspect.TAINTS)
    assert noted(journal, position) == [(4, Aspect.USAGE | Aspect.PODS), (3, Aspect.TAINTS)]
    assert noted(journal, journal.position) == []


def filled(count: int) -> Journal:
    journal = Journal()
    for row in range(count):
        journal.note(row % 1000, Aspect.USAGE)
    return journal


@pytest.mark.parametrize("behind", [1, 7, RING - 1, RING])
@pytest.mark.parametrize("count", [RING, RING + 5, 2 * RING, 2 * RING + 5])
def test_a_full_ring_gives_its_last_entries(count: int, behind: int) -> None:
    journal = filled(count)
    found = noted(journal, count - behind)
    assert found == [(row % 1000, Aspect.USAGE) for row in range(count - behind, count)]


def test_what_fell_out_of_the_ring_is_none() -> None:
    journal = filled(RING + 5)
    assert journal.since(4) is None
    assert journal.since(5) is not None
    assert journal.since(0) is None


def test_the_journal_knows_the_last_entry_about_nodes_themselves() -> None:
    journal = Journal()
    assert journal.about_nodes == 0
    journal.note(1, Aspect.USAGE | Aspect.PODS)
    assert journal.about_nodes == 0
    for position, aspect in enumerate((Aspect.LABELS, Aspect.TAINTS, Aspect.PRESENCE), 2):
        journal.note(1, aspect | Aspect.USAGE)
        assert journal.about_nodes == position
    journal.note_all(np.array([1, 2]), Aspect.AGE)
    assert journal.about_nodes == 4
    journal.note_all(np.array([1, 2]), Aspect.LABELS)
    assert journal.about_nodes == journal.position == 8
