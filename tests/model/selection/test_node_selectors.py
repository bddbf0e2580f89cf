from __future__ import annotations

from typing import Any

import msgspec
import pytest

from policysched.model.objects import NodeSelector
from policysched.model.selection.node_selectors import (
    lenient_node_selector,
    node_selector,
    preferred_nodes,
    required_nodes,
)
from policysched.model.selection.selectors import SelectorError
from tests.model.build import pod

LABELS = {"zone": "a", "cores": "8"}


def expressions(*items: tuple[str, str, list[str]]) -> list[dict[str, Any]]:
    return [{"key": key, "operator": operator, "values": values} for key, operator, values in items]


def term(*labels: tuple[str, str, list[str]], fields: tuple[tuple[str, str, list[str]], ...] = ()) -> dict[str, Any]:
    return {"matchExpressions": expressions(*labels), "matchFields": expressions(*fields)}


def demanding(*terms: dict[str, Any], **labels: str) -> Any:
    required = {"nodeSelectorTerms": list(terms)}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return pod({"affinity": affinity, "nodeSelector": labels})


NAMED = "metadata.name"

REQUIRED = [
    ("a label", (term(("zone", "In", ["a"])),), True),
    ("a label that is another", (term(("zone", "In", ["b"])),), False),
    ("terms are alternatives", (term(("zone", "In", ["b"])), term(("zone", "In", ["a"]))), True),
    ("requirements of a term all hold", (term(("zone", "In", ["a"]), ("x", "Exists", [])),), False),
    ("an empty term matches nothing", (term(),), False),
    ("an empty term beside another", (term(), term(("zone", "Exists", []))), True),
    ("no terms match nothing", (), False),
    ("greater", (term(("cores", "Gt", ["4"])),), True),
    ("less", (term(("cores", "Lt", ["4"])),), False),
    ("a comparison with a text", (term(("cores", "Gt", ["four"])),), False),
    ("an invalid term is passed over", (term(("zone", "Near", ["a"])), term(("zone", "In", ["a"]))), True),
    ("one invalid requirement spoils its term", (term(("zone", "In", ["a"]), ("x", "In", [])),), False),
    ("a name", (term(fields=((NAMED, "In", ["n1"]),)),), True),
    ("another name", (term(fields=((NAMED, "In", ["n2"]),)),), False),
    ("not this name", (term(fields=((NAMED, "NotIn", ["n1"]),)),), False),
    ("not another name", (term(fields=((NAMED, "NotIn", ["n2"]),)),), True),
    ("several names are invalid", (term(fields=((NAMED, "In", ["n1", "n2"]),)),), False),
    ("fields know no other operators", (term(fields=((NAMED, "Exists", []),)),), False),
    ("other fields are empty", (term(fields=(("spec.unschedulable", "In", ["false"]),)),), False),
    ("other fields are not something", (term(fields=(("spec.unschedulable", "NotIn", ["x"]),)),), True),
    ("a name and a label", (term(("zone", "In", ["b"]), fields=((NAMED, "In", ["n1"]),)),), False),
]


@pytest.mark.parametrize(("terms", "expected"), [case[1:] for case in REQUIRED], ids=[case[0] for case in REQUIRED])
def test_required_node_affinity_matches(terms: tuple[dict[str, Any], ...], expected: bool) -> None:
    assert required_nodes(demanding(*terms)).matches("n1", LABELS) is expected


def test_node_selector_and_affinity_must_both_match() -> None:
    ok = term(("zone", "In", ["a"]))
    assert required_nodes(demanding(ok, cores="8")).matches("n1", LABELS)
    assert not required_nodes(demanding(ok, cores="9")).matches("n1", LABELS)
    assert required_nodes(demanding(ok, cores="8")).keys == {"zone", "cores"}


def test_pod_without_wishes_matches_every_node() -> None:
    for one in (pod(), pod({"affinity": {}}), pod({"affinity": {"nodeAffinity": {}}})):
        assert required_nodes(one).demands_nothing
        assert required_nodes(one).matches("n1", {})
        assert preferred_nodes(one) == ()
    assert not required_nodes(pod({"nodeSelector": {"a": "1"}})).demands_nothing
    assert not required_nodes(demanding()).demands_nothing


def test_fields_of_a_node_without_a_name_are_not_looked_at() -> None:
    assert required_nodes(demanding(term(fields=((NAMED, "In", ["n1"]),)))).matches("", {})


def test_selector_of_a_volume_must_be_valid() -> None:
    raw = {"nodeSelectorTerms": [term(("zone", "In", ["a"])), term(("zone", "In", []))]}
    selector = msgspec.convert(raw, NodeSelector)
    assert lenient_node_selector(selector).matches("n1", LABELS)
    with pytest.raises(SelectorError):
        node_selector(selector)
    valid = msgspec.convert({"nodeSelectorTerms": raw["nodeSelectorTerms"][:1]}, NodeSelector)
    assert node_selector(valid).matches("n1", LABELS)
    assert not node_selector(NodeSelector()).matches("n1", LABELS)


def liking(*terms: tuple[int, dict[str, Any]]) -> Any:
    preferred = [{"weight": weight, "preference": preference} for weight, preference in terms]
    return pod({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}})


def test_preferred_terms_carry_their_weights() -> None:
    terms = preferred_nodes(
        liking(
            (5, term(("zone", "In", ["a"]))),
            (7, term(("zone", "In", ["b"]))),
            (9, term(fields=((NAMED, "In", ["n1"]),))),
        )
    )
    assert [one.weight for one in terms if one.term.matches("n1", LABELS)] == [5, 9]


def test_preferred_terms_that_say_or_weigh_nothing_are_left_out() -> None:
    assert preferred_nodes(liking((0, term(("zone", "Near", []))), (5, term()))) == ()


def test_invalid_preferred_term_is_an_error() -> None:
    with pytest.raises(SelectorError):
        preferred_nodes(liking((1, term(("zone", "Near", [])))))
