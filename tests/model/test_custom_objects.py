"""Custom resources that plugins name, and their objects."""

from __future__ import annotations

import pytest

from policysched.framework import Action, Cluster, CustomResource
from policysched.model.custom_objects import custom_kind
from policysched.model.decode import ObjectError

FOOS = CustomResource("foos.v1beta1.apps.example.com")


def test_resource_says_where_its_objects_are() -> None:
    kind = custom_kind(FOOS)
    assert (kind.path, kind.resource) == ("/apis/apps.example.com/v1beta1/foos", FOOS)
    assert custom_kind(CustomResource(FOOS.value)) is kind


@pytest.mark.parametrize("name", ["", "foos", "foos.v1", "foos..example.com", ".v1.example.com", "foos.v1."])
def test_name_without_plural_version_and_group_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"plural\.version\.group"):
        CustomResource(name)


def test_object_is_kept_whole_and_its_changes_are_told() -> None:
    cluster, read = Cluster(), custom_kind(FOOS).decode
    first = read(b'{"metadata":{"name":"a","namespace":"d"},"spec":{"open":false}}')
    other = read({"metadata": {"name": "a", "namespace": "d"}, "spec": {"open": True}})
    changes = [cluster.take(first), cluster.take(first), cluster.take(other), cluster.drop(other)]
    assert [one.action for one in changes] == [Action.ADD, Action.NONE, Action.UPDATE_OTHER, Action.DELETE]
    assert {one.resource for one in changes} == {FOOS}
    cluster.take(other)
    assert {key: one.content["spec"] for key, one in cluster.objects.custom(FOOS).items()} == {"d/a": {"open": True}}


@pytest.mark.parametrize("raw", [b"[]", b"{", b'{"metadata":{"name":7}}', b'{"metadata":{"name":"a"},"spec":\xff}'])
def test_malformed_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ObjectError):
        custom_kind(FOOS).decode(raw)
