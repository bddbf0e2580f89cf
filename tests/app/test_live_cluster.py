from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from policysched.app.checking.files import read_nodes
from policysched.app.clock import SystemClock
from policysched.app.demo.sandbox_setup import new_sandbox, start, written_kubeconfig
from policysched.app.dry_run.dry_run import compiles, in_force
from policysched.app.dry_run.inputs import gather
from policysched.app.dry_run.live_cluster import read_cluster
from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError
from policysched.kube import listing
from policysched.kube.connection import Connection
from policysched.kube.transport import Transport
from policysched.model.policy import LAST_GOOD
from policysched.sandbox import Sandbox, sandbox_nodes

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: a}]}\n"


def _policy(require: str, **more: Any) -> dict[str, Any]:
    spec = {"filters": [{"name": "a", "require": require}]}
    return {
        "apiVersion": "policysched.io/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "p", "generation": 4},
        "spec": spec,
        **more,
    }


@pytest_asyncio.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    made = new_sandbox(kubelet_seconds=None)
    made.load(sandbox_nodes(3))
    await start(made)
    yield made
    await made.stop()


@pytest.fixture
def kubeconfig(sandbox: Sandbox, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    with written_kubeconfig(sandbox.kubeconfig(), path):
        return path


async def test_live_cluster_is_read_page_by_page(
    sandbox: Sandbox, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE", 2)
    sandbox.load([_policy("node.ready")])
    found = await read_cluster(kubeconfig)
    kinds = [(one["kind"], one["apiVersion"]) for one in found]
    assert kinds.count(("Node", "v1")) == 3
    assert kinds.count(("PriorityClass", "scheduling.k8s.io/v1")) == 2
    assert kinds.count(("SchedulingPolicy", "policysched.io/v1alpha1")) == 1


async def test_live_cluster_without_our_resource_is_read(sandbox: Sandbox, kubeconfig: Path) -> None:
    connection = Connection(sandbox.url, SystemClock())
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/schedulingpolicies.policysched.io"
    await Transport(connection).request("DELETE", path)
    await connection.close()
    assert {one["kind"] for one in await read_cluster(kubeconfig)} == {"Node", "Namespace", "PriorityClass", "Service"}


async def test_live_cluster_that_is_away_is_said_in_words(sandbox: Sandbox, kubeconfig: Path) -> None:
    await sandbox.stop()
    with pytest.raises(ConnectionProblemError, match="cannot be reached: connection refused by "):
        await read_cluster(kubeconfig)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, " does not accept the credentials: no"),
        (403, " refuses a list: no"),
        (500, " refuses a list: no"),
        (0, "no"),
    ],
)
async def test_live_cluster_that_refuses_is_said_in_words(
    kubeconfig: Path, status: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object, **__: object) -> bytes:
        raise ApiError(status, "No", "no")

    monkeypatch.setattr(Transport, "request", refused)
    with pytest.raises(ConnectionProblemError) as caught:
        await read_cluster(kubeconfig)
    assert str(caught.value).endswith(said)


async def test_live_cluster_of_an_unknown_context_is_refused(kubeconfig: Path) -> None:
    with pytest.raises(ConnectionProblemError, match='no context "other"'):
        await read_cluster(kubeconfig, "other")


async def test_dry_run_joins_the_live_cluster_with_files(sandbox: Sandbox, kubeconfig: Path, tmp_path: Path) -> None:
    sandbox.load([_policy('node.name == "node-2"')])
    pod, more = tmp_path / "pod.yaml", tmp_path / "more.yaml"
    pod.write_text(POD)
    more.write_text("kind: Node\nmetadata: {name: extra}\nstatus: {allocatable: {cpu: 1, memory: 1Gi, pods: 9}}\n")
    before = sandbox.revision
    inputs = await gather(["live", str(more)], str(pod), kubeconfig=kubeconfig)
    record = inputs.evaluate(inputs.findings()).to_dict()
    assert record["selected"] == "node-2"
    assert set(record["rejected"]) == {"node-1", "node-3", "extra"}
    assert sandbox.revision == before, "nothing is changed"


GOOD, BROKEN = "node.ready", "node.ready ="
REMEMBERED = {"uid": "", "generation": 3, "spec": _policy('node.name == "a"')["spec"]}
CLAIMED = {"activeGeneration": 3, "activeSpec": _policy('node.name == "a"')["spec"]}


def _kept(policy: dict[str, Any], kept: Any) -> dict[str, Any]:
    return policy | {"metadata": policy["metadata"] | {"annotations": {LAST_GOOD: json.dumps(kept)}}}


@pytest.mark.parametrize(
    ("policy", "generation", "require"),
    [
        (_policy(GOOD), 4, GOOD),
        (_kept(_policy(GOOD), REMEMBERED), 4, GOOD),
        (_kept(_policy(BROKEN), REMEMBERED), 3, 'node.name == "a"'),
        (_kept(_policy(BROKEN), REMEMBERED | {"generation": 5}), 4, BROKEN),
        (_kept(_policy(BROKEN), 5), 4, BROKEN),
        (_policy(BROKEN), 4, BROKEN),
        (_policy(BROKEN, status=CLAIMED), 4, BROKEN),
        (_policy(BROKEN, status=5), 4, BROKEN),
        (_kept({**_policy(GOOD), "spec": 5}, REMEMBERED), 3, 'node.name == "a"'),
    ],
)
def test_in_force_is_the_newest_spec_that_compiles(policy: dict[str, Any], generation: int, require: str) -> None:
    found = in_force(policy)
    assert found["metadata"]["generation"] == generation
    assert found["spec"]["filters"][0]["require"] == require
    assert compiles(found) is (require != BROKEN)


async def test_nodes_alone_are_read_for_a_check(
    sandbox: Sandbox, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    request = Transport.request

    async def counted(self: Transport, method: str, path: str, *given: Any, **named: Any) -> bytes:
        asked.append(path)
        return await request(self, method, path, *given, **named)

    monkeypatch.setattr(Transport, "request", counted)
    assert (await read_nodes(["live"], kubeconfig)).nodes.count == 3
    assert {path.partition("?")[0] for path in asked} == {"/api/v1/nodes"}
