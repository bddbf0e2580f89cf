from __future__ import annotations

import pytest

from policysched.model.selection.name_validation import (
    is_device_resource_name,
    is_extended_resource_name,
    is_label_name,
    is_label_value,
    is_pod_level_resource,
    is_qualified_name,
    is_scalar_resource_name,
)


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("example.com/a.b_c-d", True, True),
        ("cpu", False, False),
        ("pods", False, False),
        ("storage", False, False),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("kubernetes.io/thing", False, True),
        ("x.kubernetes.io/thing", False, True),
        ("requests.nvidia.com/gpu", False, False),
        ("nvidia.com/-gpu", False, False),
        ("NVIDIA.com/gpu", False, False),
        ("a.com/b/c", False, False),
        ("a.com/", False, False),
        ("a.com/" + "x" * 63, True, True),
        ("a.com/" + "x" * 64, False, False),
        ("a" * 250 + "/x", False, False),
        ("deviceclass.resource.kubernetes.io/gpu", False, True),
    ],
)
def test_resource_name_is_sorted_into_its_kind(name: str, extended: bool, scalar: bool) -> None:
    assert (is_extended_resource_name(name), is_scalar_resource_name(name)) == (extended, scalar)


def test_device_resources_are_extended_or_name_a_device_class() -> None:
    assert is_device_resource_name("deviceclass.resource.kubernetes.io/gpu")
    assert is_device_resource_name("nvidia.com/gpu")
    assert not is_device_resource_name("cpu")


def test_pod_level_resources_are_cpu_memory_and_huge_pages() -> None:
    assert [
        name for name in ("cpu", "memory", "hugepages-1Gi", "ephemeral-storage", "a.b/c") if is_pod_level_resource(name)
    ] == [
        "cpu",
        "memory",
        "hugepages-1Gi",
    ]


@pytest.mark.parametrize(
    ("text", "key", "label_value"),
    [
        ("a", True, True),
        ("A_b.c-d", True, True),
        ("a/b", True, False),
        ("/b", False, False),
        ("a//b", False, False),
        ("", False, True),
        ("-a", False, False),
        ("a-", False, False),
        ("a\n", False, False),
        ("é", False, False),
        ("x" * 63, True, True),
        ("x" * 64, False, False),
        ("a..b/c", False, False),
    ],
)
def test_label_keys_and_values_follow_their_syntax(text: str, key: bool, label_value: bool) -> None:
    assert (is_qualified_name(text), is_label_value(text)) == (key, label_value)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("a", True), ("a-1", True), ("1a", True), ("a" * 63, True), ("a" * 64, False), ("", False)]
    + [(text, False) for text in ("-a", "a-", "A", "a.b", "a_b", "a b", "ä", "a\n")],
)
def test_dns_labels(text: str, is_one: bool) -> None:
    assert is_label_name(text) is is_one
