"""Many claims take the volumes that they would take if each were asked about each volume."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policysched.framework import Cluster
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim
from policysched.plugins.volumes import matching, volume_table, volume_topology
from policysched.plugins.volumes.matching import Matcher, smallest_first
from policysched.plugins.volumes.volume_topology import VolumeTopology
from tests.plugins.stored import claim, volume, with_storage
from tests.plugins.volumes.binding_build import NODES, STATIC, at

SIZES = st.sampled_from(["1", "2", "3", "1500m", "1Gi"])
MODES = st.lists(st.sampled_from(["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]), max_size=3)
KINDS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {}, {"volumeMode": "Filesystem"}, {"volumeMode": "Block"}]
)
ATTRIBUTES: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {}, {"volumeAttributesClassName": "gold"}])
RESERVATIONS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {}, {}, {"claimRef": {"namespace": "default", "name": "c0"}}]
)
CLASSES = st.sampled_from(["static", "static", "other"])
LABELS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("123"))
REACHED = st.sampled_from([None, at("a"), at("b"), at("a", "b"), at("b", "a"), at("nowhere")])
VALUES = st.lists(st.sampled_from("1239"), min_size=1, max_size=3)
REQUIREMENTS = st.fixed_dictionaries({"key": st.sampled_from("xyzn")}).flatmap(
    lambda one: st.one_of(
        st.sampled_from([one | {"operator": "Exists"}, one | {"operator": "DoesNotExist"}]),
        st.builds(
            lambda operator, values: one | {"operator": operator, "values": values},
            st.sampled_from(["In", "NotIn"]),
            VALUES,
        ),
    )
)
SELECTORS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.lists(REQUIREMENTS, max_size=3).map(lambda all_of: {"selector": {"matchExpressions": all_of}}),
    LABELS.map(lambda labels: {"selector": {"matchLabels": labels}}),
)


@st.composite
def volumes(draw: st.DrawFn) -> list[PersistentVolume]:
    return [
        volume(
            f"v{number}",
            nodes=draw(REACHED),
            size=draw(SIZES),
            of=draw(CLASSES),
            metadata={"labels": draw(LABELS)},
            accessModes=draw(MODES),
            **draw(KINDS),
            **draw(ATTRIBUTES),
            **draw(RESERVATIONS),
        )
        for number in range(draw(st.integers(0, 12)))
    ]


@st.composite
def claims(draw: st.DrawFn) -> list[PersistentVolumeClaim]:
    made = [
        claim(
            f"c{number}",
            of=draw(CLASSES),
            size=draw(st.none() | SIZES),
            accessModes=draw(MODES),
            **draw(SELECTORS),
            **draw(KINDS),
            **draw(ATTRIBUTES),
        )
        for number in range(draw(st.integers(1, 8)))
    ]
    return smallest_first(draw(st.lists(st.sampled_from(made), min_size=2, max_size=12)))


ROWS = range(len(NODES))


def taken(around: Cluster, named: list[PersistentVolumeClaim], few: int) -> list[Any]:
    """The volume of each row for each claim in turn, volumes being looked at one by one for a few claims."""
    with mock.patch.object(matching, "FEW_CLAIMS", few):
        matcher = Matcher(around, VolumeTopology(around), len(named))
    made = [matcher.match(one) for one in named]
    return [
        one if one is None or isinstance(one, str) else [found and found.metadata.name for found in map(one.at, ROWS)]
        for one in made
    ]


@pytest.mark.parametrize("kept", [0, volume_table.FEW])
@given(free=volumes(), named=claims())
def test_claims_take_the_same_volumes_from_a_table(
    kept: int, free: list[PersistentVolume], named: list[PersistentVolumeClaim]
) -> None:
    around = with_storage(*NODES, STATIC, *free)
    with mock.patch.object(volume_table, "FEW", kept):
        assert taken(around, named, 0) == taken(around, named, len(named))


@given(free=volumes(), named=claims())
def test_volumes_that_few_nodes_reach_are_taken_as_those_that_many_reach(
    free: list[PersistentVolume], named: list[PersistentVolumeClaim]
) -> None:
    around = with_storage(*NODES, STATIC, *free)
    with mock.patch.object(volume_topology, "FEW_ROWS", -1):
        of_many = taken(around, named, 0), taken(around, named, len(named)), taken(around, named[:1], 1)
    assert of_many == (taken(around, named, 0), taken(around, named, len(named)), taken(around, named[:1], 1))


def test_local_volumes_are_looked_up_and_not_compared_with_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    around = with_storage(*NODES, STATIC, *(volume(f"v{n}", nodes=at("ab"[n % 2]), of="static") for n in range(50)))
    compared: list[PersistentVolume] = []
    monkeypatch.setattr(VolumeTopology, "holds", lambda *given: compared.append(given[1]))
    found = taken(around, [claim("c", of="static")] * 3, 8)
    assert found[0] == [{"a": "v0", "b": "v1"}.get(one.metadata.name) for one in NODES]
    assert compared == []


def test_selector_that_is_no_selector_is_told_for_many_claims_too() -> None:
    broken = claim(of="static", selector={"matchExpressions": [{"key": "x", "operator": "Strange"}]})
    around = with_storage(*NODES, STATIC, volume(of="static"))
    assert taken(around, [broken] * 20, 8) == taken(around, [broken] * 20, 100)
