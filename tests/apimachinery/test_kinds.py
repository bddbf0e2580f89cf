from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policysched.apimachinery.errors import StatusError, shown
from policysched.apimachinery.kinds import complete, validate
from policysched.apimachinery.resources import BUILTIN, Registry
from policysched.apimachinery.schema import prune
from policysched.apimachinery.selectors import object_selected
from tests.sandbox.bodies import deployment, pod

if TYPE_CHECKING:
    from policysched.apimachinery.resources import ApiResource

Json = dict[str, Any]


def of_kind(kind: str) -> ApiResource:
    found = Registry().of_kind(kind)
    assert found is not None
    return found


def faults(kind: str, obj: Json) -> dict[str, str]:
    obj = {"metadata": {"name": "x"}} | obj
    complete(of_kind(kind), obj)
    return {cause.field: cause.text for cause in validate(of_kind(kind), obj)}


C = {"name": "c", "image": "i"}
BOTH = {"basic": {}, "gang": {"minCount": -1}}
TOLERATIONS = [{"operator": "Equal"}, {"key": "a", "operator": "Exists", "value": "b"}, {"key": "a", "effect": "No"}]


@pytest.mark.parametrize(
    ("kind", "obj", "field", "text"),
    [
        ("Pod", pod("x", containers=[C, C]), "spec.containers[1].name", 'Duplicate value: "c"'),
        ("Pod", pod("x", containers=[C | {"name": "A b"}]), "spec.containers[0].name", "RFC 1123 label"),
        ("Pod", pod("x", tolerations=TOLERATIONS), "spec.tolerations[0].operator", "operator must be Exists"),
        ("Pod", pod("x", tolerations=TOLERATIONS), "spec.tolerations[1].operator", "value must be empty"),
        ("Pod", pod("x", tolerations=TOLERATIONS), "spec.tolerations[2].effect", "Unsupported value"),
        ("Pod", pod("x", labels={"a": "-"}), "metadata.labels", "a valid label must be"),
        ("Pod", pod("x", labels={"a": "b" * 64}), "metadata.labels", "no more than 63"),
        ("Pod", pod("x", labels={"a/b/c": "d"}), "metadata.labels", "name part must consist"),
        ("Pod", pod("x" * 254), "metadata.name", "no more than 253 bytes"),
        ("Namespace", {"metadata": {"name": "a.b"}}, "metadata.name", "RFC 1123 label"),
        ("Node", {"spec": {"taints": [{"effect": "No"}]}}, "metadata.taints[0].key", "Required value"),
        ("Node", {"spec": {"taints": [{"effect": "No"}]}}, "metadata.taints[0].effect", "Unsupported value"),
        ("Deployment", deployment("x", -1), "spec.replicas", "greater than or equal to 0"),
        ("Deployment", {"spec": {}}, "spec.selector", "Required value"),
        ("Deployment", {"spec": {"selector": {"matchLabels": {"a": "b"}}}}, "spec.template.metadata.labels", "not"),
        ("ReplicationController", {"spec": {}}, "spec.selector", "Required value"),
        ("StorageClass", {}, "provisioner", "Required value"),
        ("PodGroup", {}, "spec.schedulingPolicy", 'Invalid value: "": must specify one of: `basic`, `gang`'),
        ("PodGroup", {"spec": {"schedulingPolicy": BOTH}}, "spec.schedulingPolicy", "must specify exactly one of"),
        ("PodGroup", {"spec": {"schedulingPolicy": {"gang": {}}}}, "spec.schedulingPolicy.gang.minCount", "Required"),
        ("PodGroup", {"spec": {"schedulingPolicy": BOTH}}, "spec.schedulingPolicy.gang.minCount", "than or equal to 1"),
    ],
)  # fmt: skip
def test_validate_names_the_field(kind: str, obj: Json, field: str, text: str) -> None:
    assert text in faults(kind, obj)[field]


@pytest.mark.parametrize("kind", [row.kind for row in BUILTIN if row.group == "rbac.authorization.k8s.io"])
def test_names_of_roles_may_be_paths(kind: str) -> None:
    assert not list(validate(of_kind(kind), {"metadata": {"name": "system:Node/x"}}))


@pytest.mark.parametrize("policy", [{"basic": {}}, {"gang": {"minCount": 1}}])
def test_pod_group_has_one_policy(policy: Json) -> None:
    assert not faults("PodGroup", {"spec": {"schedulingPolicy": policy}})
    assert defaulted("PodGroup", {"spec": {"schedulingPolicy": policy}})["spec"]["disruptionMode"] == {"single": {}}


def defaulted(kind: str, obj: Json) -> Json:
    obj = {"metadata": {"name": "x"}} | obj
    complete(of_kind(kind), obj)
    return obj


def test_pod_parts_get_their_defaults() -> None:
    container = C | {
        "livenessProbe": {"httpGet": {"port": 80}},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    }
    volumes = [{"name": "a"}, {"name": "b", "secret": {}}, {"name": "c", "hostPath": {"path": "/"}}]
    spec = defaulted("Pod", pod("x", containers=[container], volumes=volumes, serviceAccount="s"))["spec"]
    probe = spec["containers"][0]["livenessProbe"]
    assert (probe["periodSeconds"], probe["httpGet"]) == (10, {"port": 80, "path": "/", "scheme": "HTTP"})
    assert spec["containers"][0]["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert spec["serviceAccountName"] == "s"
    assert spec["volumes"] == [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "secret": {"defaultMode": 420}},
        {"name": "c", "hostPath": {"path": "/", "type": ""}},
    ]


_ROLLING = {"maxUnavailable": 1, "maxSurge": 0}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        ("StatefulSet", {}, {"replicas": 1, "podManagementPolicy": "OrderedReady"}),
        ("DaemonSet", {}, {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": _ROLLING}}),
        ("ReplicationController", {"spec": {"template": _TEMPLATE}}, {"selector": {"a": "b"}}),
        ("PersistentVolume", {}, {"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"}),
        ("CSIDriver", {}, {"attachRequired": True, "volumeLifecycleModes": ["Persistent"]}),
        ("Service", {"spec": {"type": "ExternalName"}}, {"sessionAffinity": "None"}),
        (
            "ResourceClaim",
            {"spec": {"devices": {"requests": [{"name": "r", "exactly": {}}]}}},
            {"devices": {"requests": [{"name": "r", "exactly": {"allocationMode": "ExactCount", "count": 1}}]}},
        ),
        (
            "ResourceClaimTemplate",
            {"spec": {"spec": {"devices": {"requests": [{"firstAvailable": [{"allocationMode": "All"}]}]}}}},
            {"spec": {"devices": {"requests": [{"firstAvailable": [{"allocationMode": "All"}]}]}}},
        ),
    ],
)  # fmt: skip
def test_kinds_get_their_defaults(kind: str, obj: Json, expected: Json) -> None:
    spec = defaulted(kind, obj)["spec"]
    assert {name: spec[name] for name in expected} == expected


def term(operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": "a", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        (None, {}, False),
        ({}, {"a": "1"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        (term("In", "1"), {"a": "1"}, True),
        (term("In", "1"), {}, False),
        (term("NotIn", "1"), {}, True),
        (term("NotIn", "1"), {"a": "1"}, False),
        (term("Exists"), {"a": ""}, True),
        (term("DoesNotExist"), {"a": ""}, False),
    ],
)
def test_selectors_of_objects_select(selector: Json | None, labels: Json, *, selected: bool) -> None:
    assert object_selected(selector, labels) is selected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"spec": []}, "cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
        ({"spec": {"containers": {}}}, "object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        ({"metadata": {"labels": []}}, "field ObjectMeta.metadata.labels of type map[string]string"),
        ({"metadata": {"labels": {"a": 1}}}, "number into Go struct field ObjectMeta.metadata.labels of type string"),
        ({"spec": {"priority": True}}, "bool into Go struct field PodSpec.spec.priority of type int32"),
        ({"spec": {"overhead": {"cpu": "1x"}}}, "quantities must match"),
    ],
)  # fmt: skip
def test_prune_refuses_wrong_types(value: Json, text: str) -> None:
    with pytest.raises(StatusError) as caught:
        prune(value, of_kind("Pod").schema)
    assert text in str(caught.value)


def test_prune_drops_nulls_and_unknown_fields() -> None:
    value = {"spec": {"nodeName": None, "overhead": {"cpu": 1}, "containers": [{"name": "c", "x": 1}]}, "y": 1}
    assert prune(value, of_kind("Pod").schema) == ["spec.containers[0].x", "y"]
    assert value == {"spec": {"overhead": {"cpu": "1"}, "containers": [{"name": "c"}]}}


def test_values_are_shown_as_json() -> None:
    assert shown({"b": [True, None], "a": "x", "c": 1.5}) == '{"a":"x","b":[true,null],"c":1.5}'
