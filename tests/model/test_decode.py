from __future__ import annotations

import datetime
import json
import re
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from policysched.errors import UsageError
from policysched.model import decode as decode_module
from policysched.model.decode import (
    ObjectError,
    decode_node,
    decode_pod,
    without_nulls,
)
from policysched.model.kinds import KINDS, kind_of
from policysched.model.objects.meta import seconds_of

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": None, "labels": {"a": "1"}},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "env": [{"name": "X", "value": "1"}],
                "resources": {"requests": {"cpu": "1", "memory": 5, "a.b/c": 1.5}},
                "ports": [{"hostIP": "10.0.0.1", "hostPort": 80}],
                "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In"}}],
            }
        ],
        "hostUsers": False,
        "volumes": [
            {"name": "d", "persistentVolumeClaim": {"claimName": "d"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "a", "awsElasticBlockStore": {"volumeID": "v1", "readOnly": True}},
            {"name": "r", "rbd": {"monitors": ["m"], "image": "i"}},
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}]
                }
            }
        },
    },
    "status": {"phase": "Pending", "nominatedNodeName": "n1"},
}


def test_pod_decodes_alike_from_bytes_and_dict() -> None:
    pod = decode_pod(json.dumps(POD).encode())
    assert pod == decode_pod(POD)
    assert pod.key == "shop/web"
    container = pod.spec.containers[0]
    assert container.ports[0].host_ip == "10.0.0.1"
    assert container.resources.requests == {"cpu": "1", "memory": 5, "a.b/c": 1.5}
    assert container.restart_policy_rules[0].action == "RestartAllContainers"
    assert pod.spec.host_users is False
    assert pod.status.nominated_node_name == "n1"
    affinity = pod.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required is not None
    assert affinity.node_affinity.required.node_selector_terms[0].match_expressions[0].values == ("a",)


def test_volumes_keep_the_sources_that_matter() -> None:
    claim, ephemeral, aws, rbd = decode_pod(POD).spec.volumes
    assert claim.persistent_volume_claim is not None
    assert claim.persistent_volume_claim.claim_name == "d"
    assert ephemeral.ephemeral is not None
    assert aws.aws_elastic_block_store is not None
    assert (aws.aws_elastic_block_store.volume_id, aws.aws_elastic_block_store.read_only) == ("v1", True)
    assert rbd.rbd is not None
    assert (rbd.rbd.pool, rbd.rbd.monitors) == ("rbd", ("m",))


def test_empty_lists_are_not_shared_between_objects() -> None:
    first, second = (decode_pod({"spec": {}}).spec.tolerations for _ in range(2))
    assert first is not second


def test_nulls_count_as_absent() -> None:
    raw = {"metadata": {"name": "n", "labels": None}, "status": {"images": [{"names": None, "sizeBytes": 5}, None]}}
    for one in (raw, json.dumps(raw).encode()):
        node = decode_node(one)
        assert node.metadata.labels == {}
        assert [(image.names, image.size_bytes) for image in node.status.images] == [([], 5)]


def test_timestamps_of_yaml_become_texts() -> None:
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    raw = {"metadata": {"name": "n", "creationTimestamp": moment}}
    assert decode_node(raw).metadata.creation_timestamp == "2026-01-02T03:04:05Z"


def test_small_kinds_decode() -> None:
    assert KINDS["Namespace"].decode({"metadata": {"name": "x", "labels": {"a": "b"}}}).metadata.labels == {"a": "b"}
    assert (
        KINDS["DeviceClass"].decode({"spec": {"extendedResourceName": "a.b/c"}}).spec.extended_resource_name == "a.b/c"
    )
    priority = KINDS["PriorityClass"].decode(b'{"value": 7, "globalDefault": true}')
    assert (priority.value, priority.global_default, priority.preemption_policy) == (7, True, "PreemptLowerPriority")


@pytest.mark.parametrize(
    ("kind", "version", "selector"),
    [
        ("Service", "v1", {"app": "web"}),
        ("Service", "v1", None),
        ("ReplicationController", "v1", {"app": "web"}),
        ("ReplicaSet", "apps/v1", {"matchLabels": {"app": "web"}}),
        ("StatefulSet", "apps/v1", {"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
    ],
)
def test_services_and_controllers_decode(kind: str, version: str, selector: Any) -> None:
    raw = {"kind": kind, "metadata": {"name": "x", "namespace": "n"}, "spec": {"selector": selector, "replicas": 3}}
    found = kind_of(raw)
    assert found is not None
    assert found is kind_of(raw | {"apiVersion": version})
    decoded = found.decode(raw)
    assert type(decoded).__name__ == kind
    assert decoded.metadata.namespace == "n"
    assert (decoded.spec.selector is None) is (selector is None)
    assert kind_of(raw | {"apiVersion": "serving.knative.dev/v1"}) is None
    assert kind_of({"kind": "Deployment", "apiVersion": "apps/v1"}) is None


def test_a_malformed_workload_is_refused() -> None:
    with pytest.raises(ObjectError, match=r'replica set "n/x": spec.selector: expected object \| null, got array'):
        KINDS["ReplicaSet"].decode(
            {"kind": "ReplicaSet", "metadata": {"name": "x", "namespace": "n"}, "spec": {"selector": []}}
        )


def broken(path: str, value: Any) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads(json.dumps(POD))
    *parents, last = path.split("/")
    place: Any = raw
    for part in parents:
        place = place[int(part)] if part.isdigit() else place.setdefault(part, {})
    place[last] = value
    return raw


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("spec/priority", "high", 'pod "shop/web": spec.priority: expected int | null, got str'),
        ("spec/schedulerName", True, 'pod "shop/web": spec.schedulerName: expected text, got bool: quote it'),
        ("metadata/labels/b", 5, 'pod "shop/web": metadata.labels.b: expected text, got int: quote it'),
        ("spec/containers", {}, 'pod "shop/web": spec.containers: expected array, got object'),
        (
            "spec/containers/0/resources/requests/cpu",
            True,
            'pod "shop/web": spec.containers[0].resources.requests.cpu: expected int | float | str, got bool',
        ),
    ],
)
def test_wrong_type_is_refused_with_its_field(path: str, value: Any, message: str) -> None:
    for raw in (broken(path, value), json.dumps(broken(path, value)).encode()):
        with pytest.raises(ObjectError) as caught:
            decode_pod(raw)
        assert str(caught.value) == message


QUANTITIES = [
    "spec.overhead.cpu",
    "spec.containers[0].resources.requests.cpu",
    "spec.containers[0].resources.limits.cpu",
    "spec.initContainers[0].resources.requests.cpu",
    "spec.resources.limits.cpu",
    "status.containerStatuses[0].resources.requests.cpu",
    "status.containerStatuses[0].allocatedResources.cpu",
    "status.initContainerStatuses[0].allocatedResources.cpu",
    "status.resources.requests.cpu",
    "status.allocatedResources.cpu",
]


@pytest.mark.parametrize("field", QUANTITIES)
def test_malformed_quantity_is_refused_with_its_field(field: str) -> None:
    value: Any = "1x"
    for part in reversed(field.split(".")):
        value = {part[:-3]: [value]} if part.endswith("[0]") else {part: value}
    with pytest.raises(ObjectError) as caught:
        decode_pod({"metadata": {"name": "web"}} | value)
    assert caught.value.field == field
    assert str(caught.value).startswith(f'pod "/web": {field}: quantities must match the regular expression')


def test_malformed_quantity_of_a_node_is_refused() -> None:
    raw = {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "memory": "1GiB"}}}
    with pytest.raises(ObjectError, match=r'^node "n1": status\.allocatable\.memory: quantities must match'):
        decode_node(raw)


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(ObjectError, match="not valid JSON"):
        decode_node(b"{")


@pytest.mark.parametrize("raw", [b"[]", b'"x"', {"metadata": []}, {"metadata": {"name": {}}}])
def test_object_of_another_shape_is_refused(raw: Any) -> None:
    with pytest.raises(ObjectError):
        decode_pod(raw)


def test_object_error_is_a_mistake_of_the_user_and_knows_its_parts() -> None:
    error = ObjectError("PriorityClass", "high", "it is wrong", "value")
    assert isinstance(error, UsageError)
    assert str(error) == 'priority class "high": value: it is wrong'
    assert (error.kind, error.key, error.reason, error.field) == ("PriorityClass", "high", "it is wrong", "value")


def test_nulls_are_dropped_at_every_depth() -> None:
    assert without_nulls({"a": None, "b": [1, None, {"c": None}], "d": {"e": None}}) == {"b": [1, {}], "d": {}}


def deep(levels: int) -> bytes:
    return b'{"f:a":' * levels + b"{}" + b"}" * levels


@pytest.mark.parametrize("levels", [1000, 100_000])
@pytest.mark.parametrize("labels", [b'{"a":"b"}', b"null"])
def test_fields_that_nothing_reads_may_be_nested_as_deep_as_they_like(levels: int, labels: bytes) -> None:
    fields = b'[{"manager":"m","fieldsV1":' + deep(levels) + b"}]"
    raw = b'{"metadata":{"name":"n","labels":' + labels + b',"managedFields":' + fields + b'},"spec":{"nodeName":"x"}}'
    pod = decode_pod(raw)
    assert (pod.metadata.name, pod.spec.node_name) == ("n", "x")
    assert pod.metadata.labels == (json.loads(labels) or {})


NO_UTF8 = b'"\xff"'


def error_of_msgspec(raw: bytes) -> str:
    """The message about a text that is not JSON, without the position; versions of msgspec word it differently."""
    with pytest.raises((msgspec.MsgspecError, UnicodeError)) as caught:
        msgspec.json.decode(raw)
    return str(caught.value).partition(" in position ")[0]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (b'"priority":1e400', "not valid JSON: Number out of range"),
        (b'"priority":99999999999', "spec.priority: expected `int` <= 2147483647"),
        (b'"priority":-99999999999999999999999', "spec.priority: expected `int` >= -2147483648"),
        (b'"priority":NaN', "not valid JSON: JSON is malformed: invalid character"),
        (b'"nodeName":"\xff"', f"not valid JSON: {error_of_msgspec(NO_UTF8)}"),
        (b'"nodeName":"\\ud8"', "not valid JSON: "),
        (b'"nodeName":"' + b"\\udc00" * 10_001 + b'"', "not valid JSON: more than 10000 halves of characters"),
        (b'"nodeSelector":' + deep(2000), "spec.nodeSelector.f:a: expected text, got object"),
        (b'"overhead":{"cpu":1e400}', "not valid JSON: Number out of range"),
        (b'"containers":{}', "spec.containers: expected array, got object"),
    ],
)
def test_unusable_pod_is_named_and_never_another_exception(spec: bytes, said: str) -> None:
    with pytest.raises(ObjectError) as caught:
        decode_pod(b'{"metadata":{"name":"web","namespace":"shop"},"spec":{' + spec + b"}}")
    assert caught.value.key == "shop/web"
    assert said in str(caught.value)


def test_dict_that_is_nested_too_deeply_is_malformed() -> None:
    labels: dict[str, Any] = {}
    for _ in range(5000):
        labels = {"a": labels}
    with pytest.raises(ObjectError, match="nested too deeply"):
        decode_pod({"metadata": {"name": "web", "labels": labels}})


@pytest.mark.parametrize("stamp", ["0000-01-01T00:00:00Z", "99999-01-01T00:00:00Z", "-1", "0001-01-01T00:00:00+23:59"])
def test_absurd_times_count_as_absent_or_as_times(stamp: str) -> None:
    made = decode_node({"metadata": {"name": "n", "creationTimestamp": stamp}})
    found = seconds_of(made.metadata.creation_timestamp)
    assert found is None or found < 0


def term(weight: object) -> dict[str, Any]:
    preferred = [{"weight": weight, "preference": {}}]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


@pytest.mark.parametrize(
    "spec",
    [
        term(2**31),
        term(10**20),
        term(-(2**31) - 1),
        term(1e2),
        {"priority": 2**31},
        {"topologySpreadConstraints": [{"maxSkew": 2**31}]},
        {"topologySpreadConstraints": [{"maxSkew": 1, "minDomains": 10**30}]},
        {"containers": [{"ports": [{"hostPort": 2**40}]}]},
    ],
)
def test_a_number_beyond_the_32_bits_that_the_api_has_is_malformed(spec: dict[str, Any]) -> None:
    raw = {"metadata": {"name": "p"}, "spec": spec}
    for form in (raw, json.dumps(raw).encode()):
        with pytest.raises(ObjectError):
            decode_pod(form)


def test_the_largest_and_lowest_numbers_of_the_api_are_read() -> None:
    for number in (2**31 - 1, -(2**31)):
        pod = decode_pod({"spec": term(number) | {"priority": number}})
        assert pod.spec.priority == number
    node = decode_node({"metadata": {"name": "n"}, "status": {"images": [{"names": ["i"], "sizeBytes": 2**63 - 1}]}})
    assert node.status.images[0].size_bytes == 2**63 - 1
    with pytest.raises(ObjectError):
        decode_node({"metadata": {"name": "n"}, "status": {"images": [{"names": ["i"], "sizeBytes": 2**63}]}})


def test_a_text_with_a_wrong_type_is_refused_without_making_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    second = Mock(side_effect=decode_module._second_attempt)
    monkeypatch.setattr(decode_module, "_second_attempt", second)
    metadata = '{"namespace":"n","name":"p"}'
    wrong = f'{{"metadata":{metadata},"spec":{{"containers":[{",".join(["[]"] * 1000)}]}}}}'.encode()
    with pytest.raises(ObjectError, match=re.escape('pod "n/p": spec.containers[0]: expected object, got array')):
        decode_pod(wrong)
    assert not second.called
    for slow in (wrong[:-1], wrong.replace(b"[[]", b"[null,[]")):
        with pytest.raises(ObjectError):
            decode_pod(slow)
    assert second.call_count == 2
