"""Conversion of policies between API versions: only `apiVersion` changes, in any layout, and back again."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from policysched.app.rewriting.conversion import convert_source, version_named
from policysched.app.rewriting.files import Rewritten
from policysched.errors import PolicyschedError, UsageError
from policysched.model.policy import API_VERSIONS
from tests.app.formatting import HEAD

BETA, ALPHA = API_VERSIONS
OLD = HEAD.replace(BETA, ALPHA)
SPEC = "  # why\n  appliesTo:   pod.name=='a'\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"# {ALPHA}\n{OLD}{SPEC}", f"# {ALPHA}\n{HEAD}{SPEC}"),
        (
            f"kind: SchedulingPolicy\napiVersion:  '{ALPHA}'  # old\n",
            f"kind: SchedulingPolicy\napiVersion:  '{BETA}'  # old\n",
        ),
        (
            f'{{"apiVersion":"{ALPHA}", "kind" : "SchedulingPolicy"}}',
            f'{{"apiVersion":"{BETA}", "kind" : "SchedulingPolicy"}}',
        ),
        (f"{{apiVersion: {ALPHA}, kind: SchedulingPolicy}}\n", f"{{apiVersion: {BETA}, kind: SchedulingPolicy}}\n"),
        (
            f"apiVersion: v1\nkind: List\nitems:\n- apiVersion: {ALPHA}\n  kind: SchedulingPolicy\n- kind: Pod\n",
            f"apiVersion: v1\nkind: List\nitems:\n- apiVersion: {BETA}\n  kind: SchedulingPolicy\n- kind: Pod\n",
        ),
        (
            f"apiVersion: {ALPHA}\nkind: SchedulingPolicyList\nitems:\n- metadata: {{name: p}}\n",
            f"apiVersion: {BETA}\nkind: SchedulingPolicyList\nitems:\n- metadata: {{name: p}}\n",
        ),
        (
            f"apiVersion: &v {ALPHA}\nkind: SchedulingPolicyList\nitems:\n- apiVersion: *v\n  kind: SchedulingPolicy\n",
            f"apiVersion: &v {BETA}\nkind: SchedulingPolicyList\nitems:\n- apiVersion: *v\n  kind: SchedulingPolicy\n",
        ),
    ],
)  # fmt: skip
def test_version_changes_and_all_other_bytes_stay(old: str, new: str) -> None:
    assert convert_source(old, "p.yaml", BETA) == Rewritten(new, 1)
    assert convert_source(new, "p.yaml", BETA) == Rewritten(new)
    assert convert_source(new, "p.yaml", ALPHA) == Rewritten(old, 1)


def test_objects_of_other_kinds_and_groups_stay() -> None:
    others = [
        f"apiVersion: v1\nkind: ConfigMap\ndata: {{apiVersion: {ALPHA}, kind: SchedulingPolicy}}\n",
        "apiVersion: example.com/v1alpha1\nkind: SchedulingPolicy\n",
        "kind: SchedulingPolicy\nmetadata: {name: without-a-version}\n",
    ]
    text = "---\n".join([*others, OLD, *others])
    made = convert_source(text, "p.yaml", BETA)
    assert (made.text, made.count) == ("---\n".join([*others, HEAD, *others]), 1)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_unknown_version_is_refused_with_its_place(version: str) -> None:
    text = f"apiVersion: v1\nkind: List\nitems:\n- kind: SchedulingPolicy\n  apiVersion: policysched.io/{version}\n"
    with pytest.raises(UsageError) as caught:
        convert_source(text, "p.yaml", BETA)
    said = f'unknown API version "policysched.io/{version}"; expected {BETA}, {ALPHA}'
    assert str(caught.value) == f"p.yaml:5:15: {said}"


def test_alias_that_shares_the_version_with_another_value_is_refused() -> None:
    text = f"apiVersion: &v {ALPHA}\nkind: SchedulingPolicy\nmetadata: {{name: p, labels: {{version: *v}}}}\n"
    with pytest.raises(PolicyschedError, match=r"^p\.yaml: cannot change the text without changing other values"):
        convert_source(text, "p.yaml", BETA)


@pytest.mark.parametrize(("name", "version"), [("v1alpha1", ALPHA), ("v1beta1", BETA), (ALPHA, ALPHA), (BETA, BETA)])
def test_version_may_be_named_without_its_group(name: str, version: str) -> None:
    assert version_named(name) == version


@pytest.mark.parametrize("name", ["", "v1", "policysched.io", "example.com/v1beta1", "V1beta1"])
def test_version_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f'unknown API version "{name}"; the versions are {BETA}, {ALPHA}'):
        version_named(name)


VALUES = st.recursive(
    st.text(max_size=8) | st.integers() | st.booleans() | st.none() | st.sampled_from([ALPHA, BETA]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(VALUES, VALUES, st.booleans(), st.sampled_from(["yaml", "flow", "json"]))
def test_no_value_is_lost_on_the_way_there_and_back(spec: Any, labels: Any, listed: bool, style: str) -> None:
    """Whatever a policy contains, also fields that no version has."""
    one = {"apiVersion": ALPHA, "kind": "SchedulingPolicy", "metadata": {"name": "p", "labels": labels}, "spec": spec}
    whole = {"apiVersion": "v1", "kind": "List", "items": [one, one | {"apiVersion": BETA}]} if listed else one
    text = json.dumps(whole) if style == "json" else yaml.safe_dump(whole, default_flow_style=style == "flow")
    made = convert_source(text, "p.yaml", BETA).text
    read = yaml.safe_load(made) if style != "json" else json.loads(made)
    assert read == ({**whole, "items": [one | {"apiVersion": BETA}] * 2} if listed else one | {"apiVersion": BETA})
    if not listed:
        assert convert_source(made, "p.yaml", ALPHA).text == text
