from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sandbox.bodies import PODS, pod

if TYPE_CHECKING:
    from tests.sandbox.conftest import Api

_TEAMS = {"a": {"team": "x", "tier": "1"}, "b": {"team": "y"}, "c": {"team": "x", "tier": "3"}, "d": None}


async def fill(api: Api) -> None:
    for name, labels in _TEAMS.items():
        await api.post(PODS, pod(name, labels=labels))


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("", "abcd"),
        ("team=x", "ac"),
        ("team==x", "ac"),
        ("team!=x", "bd"),
        ("team", "abc"),
        ("!team", "d"),
        ("team in (x, y)", "abc"),
        ("team notin (x),team", "b"),
        ("team=x,tier=3", "c"),
        ("tier>1", "c"),
        ("tier<3", "a"),
        ("team=", ""),
    ],
)
async def test_label_selectors_select(quiet_api: Api, selector: str, names: str) -> None:
    await fill(quiet_api)
    _, found = await quiet_api.get(PODS, labelSelector=selector)
    assert "".join(item["metadata"]["name"] for item in found["items"]) == names


@pytest.mark.parametrize("selector", ["a b", "=x", "team in x", "tier>x"])
async def test_label_selectors_that_mean_nothing_are_refused(quiet_api: Api, selector: str) -> None:
    assert (await quiet_api.get(PODS, labelSelector=selector))[0] == 400


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=b", "b"),
        ("metadata.namespace=default,metadata.name!=b", "acd"),
        ("spec.nodeName=", "abcd"),
        ("status.phase=Pending", "abcd"),
        ("spec.schedulerName!=default-scheduler", ""),
        ("spec.hostNetwork=false", "abcd"),
    ],
)
async def test_field_selectors_select(quiet_api: Api, selector: str, names: str) -> None:
    await fill(quiet_api)
    _, found = await quiet_api.get(PODS, fieldSelector=selector)
    assert "".join(item["metadata"]["name"] for item in found["items"]) == names


async def test_field_selectors_know_which_fields_there_are(quiet_api: Api) -> None:
    code, found = await quiet_api.get(PODS, fieldSelector="spec.nope=1")
    assert (code, found["message"]) == (400, "field label not supported: spec.nope")
    assert (await quiet_api.get(PODS, fieldSelector="nope"))[0] == 400


async def test_pages_are_of_one_moment(quiet_api: Api) -> None:
    await fill(quiet_api)
    _, first = await quiet_api.get(PODS, limit="3")
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b", "c"]
    assert first["metadata"]["remainingItemCount"] == 1
    await quiet_api.post(PODS, pod("cc"))
    _, rest = await quiet_api.get(PODS, limit="3", **{"continue": first["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["d"]
    assert rest["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


async def test_a_page_of_a_forgotten_list_is_gone(quiet_api: Api) -> None:
    await fill(quiet_api)
    _, first = await quiet_api.get(PODS, limit="3")
    for _ in range(20):
        await quiet_api.merge(f"{PODS}/a", {"metadata": {"annotations": {"n": str(_)}}})
        await quiet_api.get(PODS, limit="1")
    code, found = await quiet_api.get(PODS, limit="3", **{"continue": first["metadata"]["continue"]})
    assert (code, found["reason"]) == (410, "Expired")
    assert (await quiet_api.get(PODS, limit="3", **{"continue": "nonsense"}))[0] == 400


async def test_lists_from_the_future_or_an_exact_past_fail(quiet_api: Api) -> None:
    await fill(quiet_api)
    code, found = await quiet_api.get(PODS, resourceVersion="999999")
    assert (code, found["reason"]) == (504, "Timeout")
    code, found = await quiet_api.get(PODS, resourceVersion="2", resourceVersionMatch="Exact")
    assert (code, found["reason"]) == (410, "Expired")
    assert (await quiet_api.get(PODS, resourceVersion="0"))[0] == 200
    for text in ("x", "²", "9" * 5000):
        assert (await quiet_api.get(PODS, limit=text))[0] == 400


async def test_items_of_built_in_lists_have_no_kind(quiet_api: Api) -> None:
    await fill(quiet_api)
    _, found = await quiet_api.get("/api/v1/pods")
    assert (found["kind"], found["apiVersion"], len(found["items"])) == ("PodList", "v1", 4)
    assert not {"kind", "apiVersion"} & set(found["items"][0])
