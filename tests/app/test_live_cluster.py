from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from policysched.app.checking.nodes import read_nodes
from policysched.app.checking.schema import policy_definition
from policysched.app.clock import SystemClock
from policysched.app.demo.gang import GROUP, MEMBERS, gang, gang_pod
from policysched.app.demo.sandbox_setup import new_sandbox, start, written_kubeconfig
from policysched.app.dry_run.dry_run import dry_run
from policysched.app.dry_run.inputs import ClusterSources, gather, gather_cluster
from policysched.app.dry_run.live_cluster import READER, read_cluster, read_kinds
from policysched.app.dry_run.policies import compiles, in_force
from policysched.app.snapshot import snapshot
from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError
from policysched.kube import listing
from policysched.kube.connection import Connection
from policysched.kube.transport import Transport
from policysched.model.decode import ObjectError
from policysched.model.kinds import KINDS, NODES, RESOURCE_CLAIMS
from policysched.model.policy import LAST_GOOD, decode_policy
from policysched.model.release import DEFAULT
from policysched.rules.compile.compiler import compile_policy
from policysched.rules.policy_status.input_presence import absent
from policysched.sandbox import Sandbox, sandbox_nodes
from tests.app import hostile

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: a}]}\n"


def _policy(require: str, **more: Any) -> dict[str, Any]:
    spec = {"filters": [{"name": "a", "require": require}]}
    return {
        "apiVersion": "policysched.io/v1beta1",
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
    assert kinds.count(("SchedulingPolicy", "policysched.io/v1beta1")) == 1


async def test_live_cluster_is_read_without_managed_fields(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Transport.request

    async def managed(self: Transport, method: str, path: str, *rest: Any, **more: Any) -> bytes:
        answer = json.loads(await request(self, method, path, *rest, **more))
        for one in answer["items"]:
            one["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": {"f:spec": {}}}]
        return json.dumps(answer).encode()

    monkeypatch.setattr(Transport, "request", managed)
    read = await read_cluster(kubeconfig, kinds=[NODES])
    assert [one["metadata"].get("managedFields") for one in read] == [None] * 3
    assert all(one["status"]["allocatable"] for one in read)


async def test_live_cluster_without_our_resource_is_read(sandbox: Sandbox, kubeconfig: Path) -> None:
    connection = Connection(sandbox.url, SystemClock())
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/schedulingpolicies.policysched.io"
    await Transport(connection).request("DELETE", path)
    await connection.close()
    assert {one["kind"] for one in await read_cluster(kubeconfig)} == {"Node", "Namespace", "PriorityClass", "Service"}


async def test_policies_are_read_where_only_the_older_version_is_served(sandbox: Sandbox, kubeconfig: Path) -> None:
    old = copy.deepcopy(policy_definition())
    [alpha] = [one for one in old["spec"]["versions"] if one["name"] == "v1alpha1"]
    old["spec"]["versions"] = [alpha | {"storage": True}]
    connection = Connection(sandbox.url, SystemClock())
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    transport = Transport(connection)
    await transport.request("DELETE", f"{path}/schedulingpolicies.policysched.io")
    await transport.request("POST", path, json.dumps(old).encode())
    await connection.close()
    sandbox.load([_policy("node.ready") | {"apiVersion": "policysched.io/v1alpha1"}])
    [found] = [one for one in await read_cluster(kubeconfig) if one["kind"] == "SchedulingPolicy"]
    assert (found["apiVersion"], found["spec"]["filters"][0]["require"]) == ("policysched.io/v1beta1", "node.ready")


async def test_live_cluster_that_is_away_is_said_in_words(sandbox: Sandbox, kubeconfig: Path) -> None:
    await sandbox.stop()
    with pytest.raises(ConnectionProblemError, match=r"cannot connect to .*: connection refused by "):
        await read_cluster(kubeconfig)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, " rejects the credentials: no"),
        (500, " rejects a list request: no"),
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


@pytest.mark.parametrize(
    ("refused", "named"),
    [
        (("nodes", "csinodes", "runtimeclasses"), "nodes, csinodes.storage.k8s.io"),
        (("schedulingpolicies",), "schedulingpolicies.policysched.io"),
    ],
)
async def test_all_rights_that_are_missing_are_named(
    kubeconfig: Path, refused: tuple[str, ...], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Transport.request

    async def refusing(self: Transport, method: str, path: str, *rest: Any, **more: Any) -> Any:
        if any(path.partition("?")[0].endswith(f"/{plural}") for plural in refused):
            raise ApiError(403, "Forbidden", "no")
        return await request(self, method, path, *rest, **more)

    monkeypatch.setattr(Transport, "request", refusing)
    with pytest.raises(ConnectionProblemError) as caught:
        await read_cluster(kubeconfig)
    assert str(caught.value).endswith(
        f' forbids listing {named}; ClusterRole "policysched-reader" has these rights: no'
    )


async def test_a_reader_without_credentials_is_told_that_and_no_rights(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = 'nodes is forbidden: User "system:anonymous" cannot list resource "nodes"'

    async def refused(*_: object, **__: object) -> bytes:
        raise ApiError(403, "Forbidden", said)

    monkeypatch.setattr(Transport, "request", refused)
    with pytest.raises(ConnectionProblemError) as caught:
        await read_cluster(kubeconfig)
    assert str(caught.value).endswith(f" forbids listing: {said}")


def test_the_role_of_readers_lists_exactly_the_kinds_that_are_read() -> None:
    role = yaml.safe_load((Path(__file__).parents[2] / "deploy/base/reader.yaml").read_text())
    assert role["metadata"]["name"] == READER
    rules = role["rules"]
    granted = [(group, plural) for one in rules for group in one["apiGroups"] for plural in one["resources"]]
    assert sorted(granted) == sorted((kind.group, kind.plural) for kind in read_kinds())
    assert {verb for one in rules for verb in one["verbs"]} == {"list"}


async def test_kinds_of_admission_that_may_not_be_listed_are_noted(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Transport.request

    async def refused(self: Transport, method: str, path: str, *rest: Any, **more: Any) -> Any:
        if any(f"/{plural}" in path for plural in ("runtimeclasses", "limitranges", "priorityclasses", "podgroups")):
            raise ApiError(403, "Forbidden", "no")
        return await request(self, method, path, *rest, **more)

    monkeypatch.setattr(Transport, "request", refused)
    inputs = await gather_cluster(ClusterSources(kubeconfig=kubeconfig))
    assert inputs.notes == tuple(
        f"cannot list {plural}: their effect on pods is not simulated: no"
        for plural in ("priorityclasses", "podgroups", "runtimeclasses", "limitranges")
    )


async def test_live_cluster_of_an_unknown_context_is_refused(kubeconfig: Path) -> None:
    with pytest.raises(ConnectionProblemError, match='no context "other"'):
        await read_cluster(kubeconfig, "other")


async def test_dry_run_joins_the_live_cluster_with_files(sandbox: Sandbox, kubeconfig: Path, tmp_path: Path) -> None:
    sandbox.load([_policy('node.name == "node-2"')])
    pod, more = tmp_path / "pod.yaml", tmp_path / "more.yaml"
    pod.write_text(POD)
    more.write_text("kind: Node\nmetadata: {name: extra}\nstatus: {allocatable: {cpu: 1, memory: 1Gi, pods: 9}}\n")
    before = sandbox.revision
    inputs = await gather(ClusterSources(["live", str(more)], kubeconfig=kubeconfig), str(pod))
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


async def test_nodes_and_namespaces_are_read_for_a_check(
    sandbox: Sandbox, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    request = Transport.request

    async def counted(self: Transport, method: str, path: str, *given: Any, **named: Any) -> bytes:
        asked.append(path)
        return await request(self, method, path, *given, **named)

    monkeypatch.setattr(Transport, "request", counted)
    assert (await read_nodes(["live"], kubeconfig)).cluster.nodes.count == 3
    discovery = {"/apis", "/apis/scheduling.k8s.io/v1beta1"}
    listed = {"/api/v1/nodes", "/api/v1/namespaces"}
    assert {path.partition("?")[0] for path in asked} == listed | discovery
    asked.clear()
    assert (await read_nodes(["live"], kubeconfig, release=DEFAULT)).cluster.nodes.count == 3
    assert {path.partition("?")[0] for path in asked} == listed


async def test_check_without_the_right_to_list_namespaces_leaves_them_out(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = Transport.request

    async def refusing(self: Transport, method: str, path: str, *rest: Any, **more: Any) -> Any:
        if path.startswith("/api/v1/namespaces"):
            raise ApiError(403, "Forbidden", "no")
        return await request(self, method, path, *rest, **more)

    monkeypatch.setattr(Transport, "request", refusing)
    read = await read_nodes(["live"], kubeconfig)
    assert (read.cluster.nodes.count, read.cluster.namespaces) == (3, {})
    assert [note.partition(": ")[0] for note in read.notes] == ["labels of namespaces are not checked"]


@pytest.mark.parametrize("serves", [True, False])
async def test_placement_rules_have_an_effect_where_pod_groups_are_served(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, serves: bool
) -> None:
    request = Transport.request

    async def discovered(self: Transport, method: str, path: str, *given: Any, **named: Any) -> bytes:
        answer = await request(self, method, path, *given, **named)
        return answer if serves or not path.startswith("/apis") else answer.replace(b"podgroups", b"others")

    monkeypatch.setattr(Transport, "request", discovered)
    cluster = (await read_nodes(["live"], kubeconfig)).cluster
    rules = {"filters": [{"name": "a", "require": "placement.size > 1"}]}
    policy = compile_policy(decode_policy(_policy("node.ready") | {"spec": {"placement": rules}})).policy
    assert policy is not None
    assert [one.code for one in absent(policy, cluster)] == ([] if serves else ["W0715"])


GOOD_NODE = b'{"metadata":{"name":"good"},"status":{"allocatable":{"cpu":"1","pods":"9"}}}'
DEEP = b"[" * 1500 + b"]" * 1500


class Items:
    """What the server of a kubeconfig has beside, as JSON or as what is none, by plural."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.items: dict[str, list[bytes]] = {}
        request = Transport.request

        async def with_items(transport: Transport, method: str, path: str, *given: Any, **named: Any) -> bytes:
            items = self.items.get(path.partition("?")[0].rpartition("/")[2])
            if items is None:
                return await request(transport, method, path, *given, **named)
            [kind] = [one.kind for one in KINDS.values() if path.startswith(f"{one.path}?")]
            head = b'{"kind":"%sList","metadata":{"resourceVersion":"1"},"items":[%s]}'
            return head % (kind.encode(), b",".join(items))

        monkeypatch.setattr(Transport, "request", with_items)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[bytes]]:
    return Items(monkeypatch).items


def _claim(parameters: bytes, name: bytes = b"c") -> bytes:
    config = b'{"opaque":{"driver":"a.example","parameters":%b}}' % parameters
    head = b'{"metadata":{"name":"%b","namespace":"default"},' % name
    return head + b'"spec":{"devices":{"requests":[{"name":"r"}],"config":[%b]}}}' % config


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (b"1", 'node "": expected object, got int'),
        (b"null", 'node "": expected object, got null'),
        (b'"x"', 'node "": expected object, got str'),
        (b"[]", 'node "": expected object, got array'),
        (b'{"metadata":{"name":"\xff"}}', 'node "": not valid JSON: '),
        (b'{"metadata":{"name":"a","generation":1e999}}', 'node "a": not valid JSON: '),
        (b'{"metadata":{"name":"a","generation":%b}}' % (b"9" * 5000), 'node "a": not valid JSON: '),
        (b'{"metadata":{"name":"a"},"x":%b}' % DEEP, 'node "a": nested deeper than 200 levels'),
        (b'{"metadata":{"name":"a"},"status":{"allocatable":{"cpu":"1s"}}}', 'node "a": status.allocatable.cpu: '),
        (b'{"metadata":{"name":"../a"}}', 'node "../a": metadata.name: its name or namespace is not valid'),
        (GOOD_NODE, 'node "good": the list has another object of this name'),
    ],
    ids=lambda one: repr(one)[:40],
)
async def test_item_that_cannot_be_used_is_left_out_and_named(
    kubeconfig: Path, served: dict[str, list[bytes]], item: bytes, said: str
) -> None:
    served["nodes"] = [GOOD_NODE, item]
    inputs = await gather_cluster(ClusterSources(kubeconfig=kubeconfig))
    assert [one["metadata"]["name"] for one in inputs.objects if one["kind"] == "Node"] == ["good"]
    [left_out] = inputs.left_out
    assert str(left_out).startswith(said)


async def test_check_logs_what_is_left_out(
    kubeconfig: Path, served: dict[str, list[bytes]], caplog: pytest.LogCaptureFixture
) -> None:
    served["nodes"] = [GOOD_NODE, b"1"]
    assert (await read_nodes(["live"], kubeconfig)).cluster.nodes.count == 1
    assert caplog.messages == ['left out: node "": expected object, got int']


@pytest.mark.parametrize("parameters", [b'{"a":"\\ud800"}', b'{"a":%b}' % DEEP, b'{"a":1e999}'], ids=range(3))
async def test_parameters_of_claims_may_be_whatever_the_server_takes_for_json(
    kubeconfig: Path, served: dict[str, list[bytes]], parameters: bytes
) -> None:
    served["resourceclaims"] = [_claim(parameters), _claim(b'{"a":[1,null]}', b"good")]
    told: list[ObjectError] = []
    found = await read_cluster(kubeconfig, kinds=[RESOURCE_CLAIMS], left_out=told.append)
    assert told == []
    stated = [RESOURCE_CLAIMS.decode(one).spec.devices.config[0].opaque for one in found]
    assert [bytes(one.parameters) for one in stated if one] == [parameters, b'{"a":[1,null]}']
    saved, broken = snapshot(found)
    assert broken == []
    config = [one["spec"]["devices"]["config"] for one in saved["items"] if one["kind"] == "ResourceClaim"]
    assert config == [({"opaque": {"driver": "a.example"}},)] * 2


async def test_what_is_deep_in_managed_fields_spoils_nothing(kubeconfig: Path, served: dict[str, list[bytes]]) -> None:
    fields = b'[{"fieldsV1":%b}]' % DEEP
    served["nodes"] = [b'{"metadata":{"managedFields":%b,"name":"a","annotations":{"x":"y"}},"z":1}' % fields]
    [found] = await read_cluster(kubeconfig, kinds=[NODES])
    metadata = {"name": "a", "annotations": {"x": "y"}}
    assert found == {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "z": 1}


async def test_what_scheduling_does_not_read_spoils_nothing(kubeconfig: Path, served: dict[str, list[bytes]]) -> None:
    served["nodes"] = [b'{"metadata":{"name":"a"},"x":1e999}', b'{"metadata":{"name":"b"},"x":"\xff"}']
    found = await read_cluster(kubeconfig, kinds=[NODES])
    assert [one["metadata"]["name"] for one in found] == ["a", "b"]
    assert not any("x" in one for one in found)


async def test_kind_of_an_item_is_that_of_its_list(kubeconfig: Path, served: dict[str, list[bytes]]) -> None:
    served["nodes"] = [b'{"kind":"List","apiVersion":5,"items":[],"metadata":{"name":"a"}}']
    [found] = await read_cluster(kubeconfig, kinds=[NODES])
    assert (found["kind"], found["apiVersion"]) == ("Node", "v1")


async def test_unreadable_policy_is_left_out_and_one_of_another_shape_is_not(
    kubeconfig: Path, served: dict[str, list[bytes]]
) -> None:
    head = b'{"metadata":{"name":"%b"},"spec":{"filters":5}%b}'
    served["schedulingpolicies"] = [head % (b"a", b',"x":"\xff"'), head % (b"b", b"")]
    inputs = await gather_cluster(ClusterSources(kubeconfig=kubeconfig))
    assert [one["metadata"]["name"] for one in inputs.objects if one["kind"] == "SchedulingPolicy"] == ["b"]
    assert [one.policy for one in inputs.findings()] == ["b"]
    assert [one.key for one in inputs.left_out] == ["a"]


async def test_random_objects_of_a_server_end_no_command(kubeconfig: Path, served: dict[str, list[bytes]]) -> None:
    chance = random.Random(20260101)
    for resource, make in hostile.MAKERS.items():
        made = (hostile.mutate(chance, make(f"m{number}"), chance.randrange(4)) for number in range(20))
        served.setdefault("pods" if resource == "placed" else resource, []).extend(map(hostile.encode, made))
    inputs = await gather_cluster(ClusterSources(kubeconfig=kubeconfig))
    assert len(inputs.objects) > 100
    assert len(inputs.left_out) > 20
    part = inputs.taking_part(inputs.findings())
    pod = {"kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [{"name": "c"}]}}
    assert dry_run(part.objects, pod, part.policies).to_dict()["result"]
    assert snapshot(inputs.objects)[0]["items"]


async def test_dry_run_joins_the_pods_of_a_live_group(sandbox: Sandbox, kubeconfig: Path, tmp_path: Path) -> None:
    sandbox.load([gang(), *(gang_pod(name, "1", GROUP) for name in MEMBERS[:-1])])
    last = tmp_path / "pod.yaml"
    last.write_text(yaml.dump(gang_pod(MEMBERS[-1], "1", GROUP)))
    inputs = await gather(ClusterSources(kubeconfig=kubeconfig), str(last))
    assert inputs.has_group
    report = await asyncio.to_thread(inputs.evaluate_group, inputs.findings())
    assert report.result == "Scheduled"
    assert [one["pod"] for one in report.to_dict()["members"]] == [f"default/{name}" for name in MEMBERS]
