"""Strings that no object has are reported, strings that Kubernetes allows are not, and the help has no warning."""

from __future__ import annotations

import re

import pytest

from policysched.language import Diagnostic, Environment, Want, compile_expression
from policysched.model.selection.name_validation import is_label_value, is_qualified_name, is_subdomain

KEYS = [
    *("disk", "a.b/c", "A", "node.kubernetes.io/disk-pressure", "a" * 63, "a_b", "1"),
    *("disk=ssd", "disk: ssd", "a b", "", "a/", "/a", "A.b/c", "a/b/c", "a" * 64, "-a", "a*", "disk:NoSchedule", "ä"),
]
VALUES = ["", "ssd", "A100", "a_b.c-1", "a" * 63, "A100*", "a b", "a,b", "a" * 64, "-a", "a:b", "50%", "ä", "$X"]
NAMES = ["gpu-1", "a.b", "1", "gpu-*", "Gpu", "a_b", "a b", "-a"]


def warnings(text: str, phase: str = "filter") -> list[Diagnostic]:
    found = compile_expression(text, Environment(phase), Want.CONDITION)  # type: ignore[arg-type]
    assert found.errors == ()
    return [one for one in found.diagnostics if one.code == "W0714"]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_no_label_has_is_reported(key: str) -> None:
    texts = [f'has({field}["{key}"])' for field in ("node.labels", "pod.labels", "pod.namespace_labels")]
    for text in (*texts, f'node.taints.has("{key}")', f'node.free["{key}"] > 1'):
        assert bool(warnings(text)) is not is_qualified_name(key), text


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("field", ['node.labels["a"]', "node.zone", 'pod.namespace_labels["a"]'])
def test_a_value_that_no_label_has_is_reported(field: str, value: str) -> None:
    for form in ('{0} == "{1}"', '"{1}" != {0}', '{0} in ["x", "{1}"]', '{0} not in ["{1}"]'):
        text = form.format(field, value)
        assert bool(warnings(text)) is not is_label_value(value), text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["node.name", "pod.namespace", "pod.service_account", "pod.priority_class"])
def test_a_name_that_no_object_has_is_reported(field: str, name: str) -> None:
    assert bool(warnings(f'{field} == "{name}"')) is not is_subdomain(name)


@pytest.mark.parametrize("value", ["A100*", "a b", "50%", "Ubuntu 24.04.3 LTS", "a,b"])
def test_a_field_with_any_text_has_no_warning(value: str) -> None:
    for field in ("node.os_image", 'node.annotations["a"]', 'pod.annotations["a"]', "pod.owner_name"):
        assert warnings(f'{field} == "{value}"') == []
    assert warnings('pod.tolerations.has("")') == []
    assert warnings('has(node.annotations["Example.com/A"])') == []
    assert warnings('glob(node.labels["a"], "A100*") ?? false') == []


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('node.taints.has("a.b/c:NoSchedule")', 'node.taints.effect("a.b/c") == "NoSchedule"'),
        ('node.taints.has("a=b:NoExecute")', 'node.taints.effect("a") == "NoExecute"'),
        ('node.taints.has("a=b")', 'node.taints.value("a") == "b"'),
        ('node.taints.has("NoSchedule")', 'node.taints.has_effect("NoSchedule")'),
        ('pod.tolerations.has("a=b")', 'pod.tolerations.value("a") == "b"'),
        ('pod.tolerations.has("NoExecute")', 'pod.tolerations.effect("...") == "NoExecute"'),
        ('has(node.labels["disk=ssd"])', 'node.labels["disk"] == "ssd"'),
        ('has(pod.labels["disk: ssd"])', 'pod.labels["disk"] == "ssd"'),
        ('node.labels["gpu"] == "A100*"', 'glob(node.labels["gpu"], "A100*")'),
        ('node.name != "gpu-?"', 'not glob(node.name, "gpu-?")'),
        ('node.labels["gpu"] == "A100|H100"', 'node.labels["gpu"] in ["A100", "H100"]'),
        ('pod.namespace != "a, b"', 'pod.namespace not in ["a", "b"]'),
    ],
)
def test_the_help_is_what_was_meant(text: str, meant: str) -> None:
    [found] = warnings(text)
    assert re.findall(r"`([^`]+)`", found.help or "")[-1] == meant
    assert warnings(meant.replace("...", "a")) == []


@pytest.mark.parametrize("form", ['{0}("{1}")', 'not {0}("{1}")'])
@pytest.mark.parametrize("function", ["starts_with", "ends_with", "contains"])
def test_a_pattern_is_for_glob_alone(function: str, form: str) -> None:
    for part in ("A100*", "?a"):
        [found] = warnings(f'{function}(node.labels["gpu"], "{part}") ?? false')
        assert "glob(" in (found.help or "")
        assert warnings(f'{function}(pod.annotations["gpu"], "{part}") ?? false') == []


@pytest.mark.parametrize(
    "text",
    [
        'node.labels["a"] == "{{ .Values.a }}"',
        'pod.annotations["a"] == "{{ .Values.a }}"',
        'has(node.labels["{{ .Values.key }}"])',
        'node.name in ["a", "{{- include x }}"]',
        'glob(node.name, "{{ .Values.prefix }}-*")',
        'pod.namespace == concat("{{ .Release.Namespace }}", "-a")',
    ],
)
def test_a_template_in_quotes_is_reported_once(text: str) -> None:
    [found] = warnings(text)
    assert found.message == "the string is a Helm template that is not rendered"


@pytest.mark.parametrize("character", ["\u200b", "\u202e", "\u00a0", "\t"])
def test_an_invisible_character_is_another_warning(character: str) -> None:
    assert warnings(f'node.labels["a"] == "x{character}"') == []
    assert warnings(f'has(node.labels["x{character}"])') == []


@pytest.mark.parametrize("image", ["nginx", "library/nginx", "registry.example:5000/nginx"])
def test_an_image_of_a_pod_has_a_tag_or_a_digest(image: str) -> None:
    part = f'contains(item, "{image}")'
    for text, meant in [
        (f'"{image}" in pod.images', f"any(pod.images, {part})"),
        (f'"{image}" not in pod.images', f"not any(pod.images, {part})"),
        (f'any(pod.images, item == "{image}")', part),
        (f'any(pod.images, "{image}" == item or starts_with(item, "a"))', part),
        (f'all(pod.images, item not in ["redis:7", "{image}"])', f"not {part}"),
    ]:
        [found] = warnings(text)
        assert found.message == f'`pod.images` never contains "{image}"'
        assert found.help == f"images have a tag or a digest; write `{meant}`"
        for tag in (":1.27", "@sha256:0a"):
            assert warnings(text.replace(image, image + tag)) == []
    assert warnings(f'any(split(pod.name, "-"), item == "{image}")') == []
    assert warnings(f"any(pod.images, {part})") == []


ONE_BY_ONE = "a pattern has only `*` and `?`; write one glob(...) for each pattern, with `or` between them"
NAME_RULE = "names have only lower-case letters, digits, `-` and `.`"


@pytest.mark.parametrize(
    ("field", "pattern", "meant"),
    [
        ("node.name", "^n[0-9]+$", ONE_BY_ONE),
        ("node.name", "{n,g}*", ONE_BY_ONE),
        ("pod.namespace", "(a|b)*", ONE_BY_ONE),
        ("node.name", "n*|g*", 'write `(glob(node.name, "n*") or glob(node.name, "g*"))`'),
        ("node.zone", "A100|V100", 'for one of several, write `node.zone in ["A100", "V100"]`'),
        ("pod.namespace", "Prod*", NAME_RULE),
        ("node.name", "a_*", NAME_RULE),
        ("node.zone", "a b*", "label values have at most 63 letters, digits, `-`, `_` and `.`"),
    ],
)
def test_a_pattern_that_nothing_matches_is_reported(field: str, pattern: str, meant: str) -> None:
    [found] = warnings(f'glob({field}, "{pattern}") ?? false')
    assert (found.message, found.help) == (f'`{field}` never matches "{pattern}"', meant)
    assert warnings(f'glob(pod.annotations["a"], "{pattern}") ?? false') == []
    for right in ("a-*", "?.b"):
        assert warnings(f'glob({field}, "{right}") ?? false') == []


def test_a_part_with_characters_that_no_name_has_is_reported() -> None:
    for function in ("starts_with", "ends_with", "contains"):
        [found] = warnings(f'{function}(node.name, "Gpu")')
        assert (found.message, found.help) == ('`node.name` never contains "Gpu"', NAME_RULE)
        assert warnings(f'{function}(node.name, "gpu-")') == warnings(f'{function}(pod.owner_name, "Gpu")') == []


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("Deployment", 'a pod of a Deployment has the owner ReplicaSet; write `"ReplicaSet"`'),
        ("deployment", 'a pod of a Deployment has the owner ReplicaSet; write `"ReplicaSet"`'),
        ("CronJob", 'a pod of a CronJob has the owner Job; write `"Job"`'),
        ("replicaset", 'write `"ReplicaSet"`'),
        ("daemonSet", 'write `"DaemonSet"`'),
    ],
)
def test_a_kind_that_owns_no_pod_is_reported(kind: str, meant: str) -> None:
    for text in (f'pod.owner_kind != "{kind}"', f'node.pods.any(peer.owner_kind in ["Job", "{kind}"])'):
        [found] = warnings(text)
        assert (found.message.partition("` ")[2], found.help) == (f'is never "{kind}"', meant)
    [found] = warnings(f'victim.owner_kind == "{kind}"', "preemption")
    assert found.help == meant


@pytest.mark.parametrize("kind", ["ReplicaSet", "Job", "Node", "Rollout", "rollout"])
def test_a_kind_that_may_own_a_pod_has_no_warning(kind: str) -> None:
    assert warnings(f'pod.owner_kind == "{kind}"') == []
