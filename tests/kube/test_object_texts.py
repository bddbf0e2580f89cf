"""Objects as the API server wrote them, over the sandbox: pods asked for, nodes kept as they are watched."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from policysched.framework.extender import ExtenderError
from policysched.kube.object_cache import ObjectCache
from policysched.kube.object_texts import MANAGED, NodeTexts, WatchedTexts, without
from policysched.model.kinds import NODES
from policysched.model.objects import Metadata, Pod

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "uid": "u1", "resourceVersion": "1", "managedFields": [{"manager": "kubelet"}]},
    "status": {"nodeInfo": {"kernelVersion": "6.1"}},
}
KEPT = {name: value for name, value in NODE.items() if name not in ("apiVersion", "kind")}


class Answers:
    """A transport that gives answers by path."""

    def __init__(self, **answers: Any) -> None:
        self.asked: list[str] = []
        self._answers = {path.replace("_", "/"): answer for path, answer in answers.items()}

    async def request(self, _: str, path: str, *__: Any, **___: Any) -> bytes:
        self.asked.append(path)
        return json.dumps(self._answers[path.partition("?")[0].strip("/")]).encode()


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


def test_nodes_are_kept_as_they_are_listed_and_watched() -> None:
    texts = NodeTexts()
    texts.wanted = True
    cache = ObjectCache(NODES, lambda *_: None, texts)
    list(cache.replacing([raw(node("n1", "1")), raw(node("n2", "1"))]))
    cache.take(raw(node("n2", "2")), deleted=False, reach=lambda _: None)
    assert json.loads(texts["n2"])["metadata"]["resourceVersion"] == "2"
    cache.take(raw(node("n1", "3")), deleted=True, reach=lambda _: None)
    assert "n1" not in texts
    list(cache.replacing([raw(node("n3", "4"))]))
    assert ("n2" in texts, "n3" in texts) == (False, True)


def test_nothing_is_kept_while_nobody_wants_it() -> None:
    texts = NodeTexts()
    cache = ObjectCache(NODES, lambda *_: None, texts)
    list(cache.replacing([raw(node("n1", "1"))]))
    assert "n1" not in texts


async def test_nodes_that_are_not_kept_yet_are_listed_once() -> None:
    listed = {"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [NODE]}
    transport = Answers(api_v1_nodes=listed)
    texts = WatchedTexts(transport, NodeTexts())  # type: ignore[arg-type]
    assert [json.loads(one) for one in await texts.nodes(["n1"])] == [KEPT]
    assert [json.loads(one) for one in await texts.nodes(["n1"])] == [KEPT]
    assert len(transport.asked) == 1
    with pytest.raises(ExtenderError, match="node n9 cannot be read"):
        await texts.nodes(["n9"])


async def test_pod_is_asked_for_and_refused_when_it_was_made_anew() -> None:
    answer = {"kind": "Pod", "metadata": {"name": "web", "uid": "u", "managedFields": []}, "spec": {"x": 1}}
    transport = Answers(api_v1_namespaces_d_pods_web=answer)
    texts = WatchedTexts(transport, NodeTexts())  # type: ignore[arg-type]
    pod = Pod(metadata=Metadata(name="web", namespace="d", uid="u"))
    assert json.loads(await texts.pod(pod)) == {"metadata": {"name": "web", "uid": "u"}, "spec": {"x": 1}}
    with pytest.raises(ExtenderError, match="it was made anew"):
        await texts.pod(Pod(metadata=Metadata(name="web", namespace="d", uid="other")))
