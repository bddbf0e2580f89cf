"""The work of a decision in steady state does not grow with the nodes."""

from __future__ import annotations

from policysched.devices import Allocator
from tests import work
from tests.devices.build import allocate, claim, devices, request, slice_of, tables


def _calls(nodes: int) -> int:
    """Count what deciding for one more claim takes, and having it take its device."""
    names = [f"n{one}" for one in range(nodes)]
    made = tables(*(slice_of(name, devices(10)) for name in names), nodes=names)

    wanted = [claim(request(1), name=f"c{number}") for number in range(6)]

    def place(number: int) -> None:
        wanting = wanted[number]
        Allocator(made, [wanting]).answers()
        found = allocate(made, wanting, row=number % nodes)
        assert found is not None
        made.allocated.assume(f"c{number}", found[0])

    for number in range(4):
        place(number)
    return work.calls(lambda: place(5))


def test_work_of_a_decision_does_not_grow_with_the_nodes() -> None:
    assert _calls(400) <= _calls(40)
