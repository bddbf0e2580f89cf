"""What several hold counts for each of them by its part, however it is held."""

from __future__ import annotations

from policysched.state.tables.columns import part_of, parts_of


class Held:
    nbytes = 1200


class Holder:
    def __init__(self, *held: Held) -> None:
        self.one, self.all = held[0], held[1:]

    def parts(self) -> tuple[int, int]:
        return part_of(self.one), parts_of(self.all)


def holders() -> list[Holder]:
    """Two that share what they hold, but for one thing."""
    one, other, third = Held(), Held(), Held()
    return [Holder(one, other), Holder(one, other, third)]


def test_a_part_is_that_of_each_holder() -> None:
    both = holders()
    assert [holder.parts() for holder in both] == [(600, 600), (600, 600 + 1200)]
    del both[0]
    assert both[0].parts() == (1200, 2400)


def test_what_says_no_size_counts_nothing() -> None:
    assert parts_of((1, "text", None)) == part_of(object()) == 0
