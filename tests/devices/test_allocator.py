"""What was found out is kept, and only nodes that moved are asked again."""

from __future__ import annotations

import pytest

from policysched.devices import AllocationAnswer, Allocator, DeviceTables
from policysched.devices.answers.row_outcomes import RowOutcomes
from policysched.devices.inventory.pool_views import NodeGroup
from policysched.devices.outcomes import Outcome
from tests.devices.build import allocate, claim, class_of, device, devices, names, request, slice_of, tables

NODES = [f"n{one}" for one in range(50)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that are evaluated, in order."""
    rows: list[int] = []
    note = RowOutcomes.note

    def noting(self: RowOutcomes, group: NodeGroup, outcome: Outcome) -> None:
        rows.extend(sorted(group.rows))
        note(self, group, outcome)

    monkeypatch.setattr(RowOutcomes, "note", noting)
    return rows


def _cluster(number: int = 2) -> DeviceTables:
    return tables(*(slice_of(node, devices(number)) for node in NODES), nodes=NODES)


def test_placement_makes_one_node_to_be_asked_again(asked: list[int]) -> None:
    made = _cluster()
    assert (Allocator(made, [claim(request(2))]).answers().codes[:50] == AllocationAnswer.YES).all()
    asked.clear()
    found = allocate(made, claim(request(1)), row=7)
    assert found is not None
    made.allocated.assume("taken", found[0])
    codes = Allocator(made, [claim(request(2), name="other")]).answers().codes
    assert asked == [7]
    assert [row for row in range(50) if codes[row] == AllocationAnswer.NO] == [7]
    made.allocated.forget("taken")
    assert Allocator(made, [claim(request(2))]).answers().codes[7] == AllocationAnswer.YES


def test_new_slice_makes_its_node_to_be_asked_again(asked: list[int]) -> None:
    made = _cluster()
    allocator = Allocator(made, [claim(request(3))])
    assert not (allocator.answers().codes[:50] == AllocationAnswer.YES).any()
    asked.clear()
    made.set_slice(slice_of("n3", devices(3), generation=2))
    assert [row for row in range(50) if allocator.answers().codes[row] == AllocationAnswer.YES] == [3]
    assert set(asked) == {3}


def test_changed_class_makes_everything_anew() -> None:
    made = tables(slice_of("n0", [device("d0", attributes={"x": {"int": 1}})]), classes=[class_of("false")])
    allocator = Allocator(made, [claim(request(1))])
    assert allocator.answers().codes[0] == AllocationAnswer.NO
    made.set_class(class_of("true"))
    assert allocator.answers().codes[0] == AllocationAnswer.YES
    made.remove_class("gpu")
    assert str(allocator.answers().error(0)) == (
        'claim ns/c, request r: could not retrieve device class gpu: deviceclass.resource.k8s.io "gpu" not found'
    )


def test_labels_of_a_node_decide_what_it_reaches() -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a"]}]}]}
    made = tables(slice_of("", devices(1), name="net", pool="net", nodeSelector=selector), nodes=("n0", "n1"))
    allocator = Allocator(made, [claim(request(1))])
    assert allocator.answers().codes[:2].tolist() == [AllocationAnswer.NO, AllocationAnswer.NO]
    made.set_node(1, "n1", {"rack": "a"})
    assert allocator.answers().codes[:2].tolist() == [AllocationAnswer.NO, AllocationAnswer.YES]
    found = allocate(made, claim(request(1)), row=1)
    assert found is not None
    assert found[0].node_selector is not None
    assert found[0].node_selector.node_selector_terms[0].match_expressions[0].values == ("a",)
    made.allocated.assume("x", found[0])
    assert allocator.answers().codes[:2].tolist() == [AllocationAnswer.NO, AllocationAnswer.NO]


def test_row_that_another_node_gets_is_asked_anew() -> None:
    made = tables(slice_of("n0", devices(1)))
    allocator = Allocator(made, [claim(request(1))])
    assert allocator.answers().codes[0] == AllocationAnswer.YES
    made.remove_node(0)
    made.set_node(0, "other", {})
    assert allocator.answers().codes[0] == AllocationAnswer.NO


def test_devices_of_claims_are_taken_once_whoever_says_so() -> None:
    made = tables(slice_of("n0", devices(2)))
    found = allocate(made, claim(request(1)))
    assert found is not None
    made.allocated.assume("c", found[0])
    written = claim(request(1))
    written = type(written)(
        metadata=written.metadata, spec=written.spec, status=type(written.status)(allocation=found[0])
    )
    made.allocated.set_claim(written)
    made.allocated.forget("c")
    assert names(allocate(made, claim(request(1), name="next"))) == [["d01"]]
    made.allocated.remove_claim("c")
    assert names(allocate(made, claim(request(2), name="next"))) == [["d00", "d01"]]


def test_shares_have_ids_and_consume_what_is_rounded() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    parts = devices(1, allowMultipleAllocations=True, capacity={"memory": {"value": "3Gi", "requestPolicy": policy}})
    made = tables(slice_of("n0", parts))
    wanting = claim(request(1, capacity={"requests": {"memory": "1500Mi"}}))
    found = allocate(made, wanting)
    assert found is not None
    result = found[0].devices.results[0]
    assert (result.share_id, result.consumed_capacity) == ("share-0", {"memory": "2Gi"})
    made.allocated.assume("c", found[0])
    assert allocate(made, wanting) is None
    assert allocate(made, claim(request(1))) is not None
