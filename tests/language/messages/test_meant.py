"""A help leads to the rule that was meant, not to another one that compiles."""

from __future__ import annotations

import re

import pytest

from policysched.language import Diagnostic, Environment, Want, compile_expression
from policysched.language.checking.compile import each_let


def error_of(text: str, phase: str = "filter", **known: object) -> Diagnostic:
    [found] = compile_expression(text, Environment(phase, **known), Want.CONDITION).errors  # type: ignore[arg-type]
    return found


def help_of(text: str) -> str:
    """The help of a text, whose expressions have neither errors nor warnings."""
    said = error_of(text).help or ""
    for one in re.findall(r"`([^`]+)`", said):
        given = one if one[0] not in "/" else f"node.free.cpu {one}"
        assert compile_expression(given, Environment("let"), Want.ANY).diagnostics == () or one in FRAGMENTS, one
    return said


FRAGMENTS = {"ephemeral_storage"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1,000", "1000"),
        ("10,000", "10000"),
        ("1,000,000", "1000000"),
        ("1,5", "1.5"),
        ("0,500", "0.500"),
        ("1,0000", "1.0000"),
    ],
)
def test_commas_between_groups_of_three_digits_go(written: str, meant: str) -> None:
    assert help_of(f"pod.priority < {written}") == f"write `{meant}`"
    assert help_of(f"node.free.memory > {written}Mi") == f"write `{meant}Mi`"


@pytest.mark.parametrize("group", ["node.free", "node.allocatable", "pod.requests"])
@pytest.mark.parametrize("name", ["storage", "disk", "ephemeral"])
def test_the_disk_of_a_node_is_its_ephemeral_storage(group: str, name: str) -> None:
    assert help_of(f"{group}.{name} > 4Gi") == "write `ephemeral_storage`"
    assert "`node.free.ephemeral_storage`" in help_of(f"node.{name} > 4Gi")


@pytest.mark.parametrize("resource", ["cpu", "memory", "ephemeral_storage"])
def test_a_percentage_is_compared_with_a_share_of_the_node(resource: str) -> None:
    for field in (f"node.free.{resource}", f"node.requested.{resource}", f"pod.requests.{resource}"):
        meant = f"for a share, write `{field} / node.allocatable.{resource}`"
        assert help_of(f"{field} > 50%") == help_of(f"80% >= {field}") == meant
    total = "memory" if resource != "cpu" else "cpu"
    said = error_of(f"node.free.{resource} - pod.requests.{resource} > 50%").help
    assert said == f"for a share, divide by the total, as in `/ node.allocatable.{total}`"


@pytest.mark.parametrize(
    ("value", "text", "meant"),
    [
        ("4G", "node.free.memory > limit", "give `limit` a unit, as in 4Gi"),
        ("4096", "limit < node.free.memory", "give `limit` a unit, as in 4Gi"),
        ("1k", "least(node.free.memory, limit) > 1Gi", "give `limit` a unit, as in 4Gi"),
        ("300", "node.age > limit", "give `limit` a unit, as in 30s, 5min or 2h"),
        (
            "4",
            "node.free.cpu > limit",
            "one side is a plain number; divide the cpu by 1000m to get a number",
        ),
    ],
)
def test_a_let_beside_bytes_needs_a_unit(value: str, text: str, meant: str) -> None:
    [(_, environment)] = each_let([("limit", value)], Environment())
    assert error_of(text, lets=environment.lets).help == meant


@pytest.mark.parametrize("separator", [",", ", ", "|", ";"])
def test_a_text_with_separators_behind_in_is_a_list(separator: str) -> None:
    for word in ("in", "not in"):
        text = f'node.labels["pool"] {word} "prod{separator}dev"'
        assert help_of(text) == f'write `node.labels["pool"] {word} ["prod", "dev"]`'


@pytest.mark.parametrize(("written", "meant"), [("true", "True"), ("false", "False")])
def test_the_status_of_a_condition_begins_with_a_capital(written: str, meant: str) -> None:
    assert error_of(f'node.conditions["DiskPressure"] == {written}').help == f'these are strings; write `"{meant}"`'
    assert error_of(f'node.labels["spot"] == {written}').help == f'labels are strings; write `"{written}"`'


@pytest.mark.parametrize(
    "path", ["schedulerName", "pod.schedulerName", "pod.scheduler_name", "pod.spec.schedulerName", "spec.schedulerName"]
)
def test_the_scheduler_of_a_pod_is_chosen_outside_of_expressions(path: str) -> None:
    assert error_of(f'{path} == "x"').help == "name the scheduler in `spec.schedulerNames`"


@pytest.mark.parametrize("field", ["pod.hostNetwork", "pod.spec.restartPolicy", "node.podCIDR", "cluster.nodeCount"])
def test_no_help_writes_a_name_in_lower_case_that_is_no_field(field: str) -> None:
    root, *_, name = field.split(".")
    found = error_of(f'{field} == "x"')
    assert (found.code, found.message, found.help) == ("E0202", f"`{root}` has no field `{name}`", None)


@pytest.mark.parametrize("name", ["contains", "has", "includes"])
def test_an_image_without_a_tag_is_part_of_an_image(name: str) -> None:
    assert help_of(f'pod.images.{name}("nginx")') == 'write `any(pod.images, contains(item, "nginx"))`'
    assert help_of(f'pod.images.{name}("nginx:1.27")') == 'write `"nginx:1.27" in pod.images`'


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("web", 'contains(pod.name, "web")'),
        (".*web.*", 'contains(pod.name, "web")'),
        ("we.b", 'glob(pod.name, "*we?b*")'),
        ("^web$", 'glob(pod.name, "web")'),
        ("^web", 'glob(pod.name, "web*")'),
        ("web$", 'glob(pod.name, "*web")'),
    ],
)
def test_a_regular_expression_matches_a_part(pattern: str, meant: str) -> None:
    assert help_of(f'pod.name.matches("{pattern}")') == f"write `{meant}`; regular expressions are not supported"
    one_by_one = f"write `any(pod.images, {meant.replace('pod.name', 'item')})`"
    assert help_of(f'pod.images.matches("{pattern}")') == one_by_one
