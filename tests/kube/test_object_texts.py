"""Cached objects as the text that the API server sent."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from policysched.kube.object_cache import ObjectCache
from policysched.kube.object_texts import MANAGED, KeptTexts, WantedTexts, without
from policysched.model.kinds import NODES, PODS
from policysched.model.objects import Node, Pod
from policysched.state.placed.pods import pod_id

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "uid": "u1", "resourceVersion": "1", "managedFields": [{"manager": "kubelet"}]},
    "status": {"nodeInfo": {"kernelVersion": "6.1"}},
}
KEPT = {name: value for name, value in NODE.items() if name not in ("apiVersion", "kind")}


def raw(obj: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(obj).encode())


def node(name: str, version: str) -> dict[str, Any]:
    metadata = NODE["metadata"] | {"name": name, "uid": f"u-{name}", "resourceVersion": version}
    return NODE | {"metadata": metadata}


def test_type_and_chosen_fields_of_the_metadata_are_left_out() -> None:
    given = json.dumps(NODE).encode()
    assert json.loads(without(given)) == KEPT
    assert json.loads(without(given, MANAGED))["metadata"] == {"name": "n1", "uid": "u1", "resourceVersion": "1"}


def test_text_that_cannot_be_read_whole_is_cut() -> None:
    deep = b'{"metadata": {"name": "n", "managedFields": [' + b"[" * 2000 + b"]" * 2000 + b"]}}"
    assert json.loads(without(deep))["metadata"]["name"] == "n"


def pod(name: str, version: str = "1", uid: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "d", "uid": uid or f"u-{name}", "resourceVersion": version}
    return {"kind": "Pod", "metadata": metadata | {"managedFields": [{"manager": "kubectl"}]}, "spec": spec}


def kept_nodes() -> KeptTexts[Node]:
    texts: KeptTexts[Node] = KeptTexts(lambda one: one.metadata.name)
    texts.want(WantedTexts.ALL)
    return texts


def reading(texts: KeptTexts[Pod]) -> ObjectCache[Pod]:
    return ObjectCache(PODS, lambda *_: None, texts)


def replace(cache: ObjectCache[Any], raws: list[msgspec.Raw]) -> None:
    taking = cache.replacement()
    taking.take(raws)
    taking.finish()


def change(cache: ObjectCache[Any], obj: dict[str, Any], *, deleted: bool = False) -> None:
    cache.take(raw(obj), deleted=deleted, reach=lambda _: None)


def version(text: bytes | None) -> str:
    assert text is not None
    found: str = json.loads(text)["metadata"]["resourceVersion"]
    return found


def test_nodes_are_kept_as_they_are_listed_and_watched() -> None:
    texts = kept_nodes()
    cache = ObjectCache(NODES, lambda *_: None, texts)
    replace(cache, [raw(node("n1", "1")), raw(node("n2", "1"))])
    assert not cache.lacks_texts
    change(cache, node("n2", "2"))
    assert version(texts.get("n2")) == "2"
    change(cache, node("n1", "3"), deleted=True)
    assert texts.get("n1") is None
    replace(cache, [raw(node("n3", "4"))])
    assert (texts.get("n2"), version(texts.get("n3"))) == (None, "4")


def test_object_made_anew_under_its_name_is_the_new_one() -> None:
    texts = kept_nodes()
    cache = ObjectCache(NODES, lambda *_: None, texts)
    replace(cache, [raw(node("n1", "1"))])
    anew = node("n1", "2")
    anew["metadata"]["uid"] = "other"
    replace(cache, [raw(anew)])
    assert version(texts.get("n1")) == "2"
    change(cache, node("n1", "3"))
    assert version(texts.get("n1")) == "3"


def test_pods_are_told_apart_by_uid_and_kept_without_managed_fields() -> None:
    texts: KeptTexts[Pod] = KeptTexts(pod_id, MANAGED)
    texts.want(WantedTexts.ALL)
    cache = reading(texts)
    replace(cache, [raw(pod("web", hostname="x"))])
    kept = texts.get("u-web")
    assert kept is not None
    assert json.loads(kept)["metadata"].keys() == {"name", "namespace", "uid", "resourceVersion"}
    assert json.loads(kept)["spec"] == {"hostname": "x"}
    change(cache, pod("web", uid="other"))
    assert texts.get("u-web") is None
    assert texts.get("other") is not None


def test_only_pods_that_are_decided_about_are_kept_where_no_victims_are_told() -> None:
    texts: KeptTexts[Pod] = KeptTexts(pod_id, MANAGED)
    texts.want(WantedTexts.PENDING)
    cache = reading(texts)
    replace(cache, [raw(pod("here", nodeName="n")), raw(pod("web"))])
    assert (texts.get("u-here"), texts.get("u-web") is None) == (None, False)
    change(cache, pod("web", "2", nodeName="n"))
    assert texts.get("u-web") is None


def test_nothing_is_kept_while_nobody_wants_it() -> None:
    texts: KeptTexts[Pod] = KeptTexts(pod_id, MANAGED)
    cache = reading(texts)
    replace(cache, [raw(pod("web"))])
    assert texts.get("u-web") is None
    texts.want(WantedTexts.ALL)
    change(cache, pod("web", "2"))
    texts.want(WantedTexts.NONE)
    assert texts.get("u-web") is None


def test_what_was_there_before_it_was_wanted_is_filled_in_and_nothing_else() -> None:
    texts: KeptTexts[Pod] = KeptTexts(pod_id, MANAGED)
    cache = reading(texts)
    replace(cache, [raw(pod(name)) for name in ("old", "new", "gone")])
    texts.want(WantedTexts.ALL)
    assert cache.lacks_texts
    change(cache, pod("new", "3"))
    change(cache, pod("gone"), deleted=True)
    list(cache.filling([raw(pod(name, "2")) for name in ("old", "new", "gone", "unknown")]))
    assert (version(texts.get("u-old")), version(texts.get("u-new"))) == ("2", "3")
    assert (texts.get("u-gone"), texts.get("u-unknown")) == (None, None)
    assert not cache.lacks_texts
