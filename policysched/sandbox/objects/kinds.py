"""The rules of the built-in kinds: defaults that depend on other fields, and what a user gets wrong.

What an object leaves out is filled in by its schema first. Checks return causes and look at one object alone: what
needs the cluster (priority, service accounts) is admission's. They are not the API server's whole list but what is
easily got wrong, so that the mistake shows here and not first in a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import Cause, required, unsupported, wrong
from policysched.sandbox.objects.resources import DEFINITIONS, ApiResource
from policysched.sandbox.objects.schema import default
from policysched.sandbox.objects.selectors import object_selected

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_EVENT_LENGTHS = {"reportingController": 253, "reportingInstance": 128, "action": 128, "reason": 128, "note": 1024}
_PATH_NAMES = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
    "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def fill(target: Json, **values: Any) -> None:
    """Set what is not set; camel-case names are the fields'."""
    for name, value in values.items():
        target.setdefault(name, value)


def complete(resource: ApiResource, obj: Json) -> None:
    """Fill in the defaults of the schema and of the kind."""
    default(obj, resource.schema)
    if resource.custom is None and resource.key in _DEFAULTS:
        _DEFAULTS[resource.key](obj)


def all_containers(spec: Json) -> list[Json]:
    """List the init containers and the containers of a pod."""
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _pod_spec(spec: Json) -> None:
    """Fill in what pods and pod templates share."""
    if "serviceAccountName" in spec:
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif "serviceAccount" in spec:
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in all_containers(spec):
        image = str(container.get("image", "")).rpartition("/")[2]
        floating = ":" not in image or image.endswith(":latest")
        fill(container, imagePullPolicy="Always" if floating and "@" not in image else "IfNotPresent")
        for port in container.get("ports") or () if spec.get("hostNetwork") else ():
            fill(port, hostPort=port.get("containerPort"))
    for volume in spec.get("volumes") or ():
        if set(volume) == {"name"}:
            volume["emptyDir"] = {}


def _pod(obj: Json) -> None:
    spec = obj["spec"]
    _pod_spec(spec)
    fill(spec, enableServiceLinks=True)
    for container in all_containers(spec):
        resources = container["resources"]
        if resources.get("limits"):
            resources["requests"] = resources["limits"] | (resources.get("requests") or {})


def _workload(obj: Json) -> None:
    _pod_spec(obj["spec"]["template"]["spec"])


def _deployment(obj: Json) -> None:
    _workload(obj)
    strategy = obj["spec"]["strategy"]
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")


def _replication_controller(obj: Json) -> None:
    _workload(obj)
    labels = obj["spec"]["template"]["metadata"].get("labels")
    if labels:
        fill(obj["spec"], selector=labels)


def _service(obj: Json) -> None:
    spec = obj["spec"]
    if spec["type"] != "ExternalName":
        fill(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack", internalTrafficPolicy="Cluster")
    for port in spec.get("ports") or ():
        fill(port, targetPort=port.get("port"))


def _node(obj: Json) -> None:
    status = obj["status"]
    if "capacity" in status:
        status["allocatable"] = status["capacity"] | (status.get("allocatable") or {})


def _namespace(obj: Json) -> None:
    name = obj["metadata"].get("name")
    if name:
        labels = obj["metadata"].get("labels") or {}
        obj["metadata"]["labels"] = {"kubernetes.io/metadata.name": name} | labels


def _device_requests(obj: Json) -> None:
    spec = obj.get("spec") or {}
    devices = (spec.get("spec") or spec).get("devices") or {}
    for request in devices.get("requests") or ():
        exact = request.get("exactly")
        for each in [exact] if exact is not None else request.get("firstAvailable") or ():
            if each["allocationMode"] == "ExactCount":
                fill(each, count=1)


def _definition(crd: Json) -> None:
    names = crd["spec"].get("names") or {}
    if names.get("kind"):
        fill(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")


_DEFAULTS: dict[str, Callable[[Json], None]] = {
    "pods": _pod,
    "nodes": _node,
    "namespaces": _namespace,
    "services": _service,
    "replicationcontrollers": _replication_controller,
    "deployments.apps": _deployment,
    "replicasets.apps": _workload,
    "statefulsets.apps": _workload,
    "daemonsets.apps": _workload,
    "resourceclaims.resource.k8s.io": _device_requests,
    "resourceclaimtemplates.resource.k8s.io": _device_requests,
    DEFINITIONS: _definition,
}


def validate(resource: ApiResource, obj: Json) -> list[Cause]:
    """Check a new or changed object."""
    causes = [*_metadata_faults(resource, obj["metadata"])]
    if resource.group == "events.k8s.io":
        causes += _event_faults(obj)
    check = _CHECKS.get(resource.key)
    if check is not None and resource.custom is None:
        causes += check(obj)
    return causes


def _metadata_faults(resource: ApiResource, metadata: Json) -> Iterator[Cause]:
    name = metadata.get("name", "")
    short = resource.key in ("namespaces", "services")
    if resource.plural not in _PATH_NAMES:
        pattern, text = (_LABEL, _LABEL_TEXT) if short else (_SUBDOMAIN, _SUBDOMAIN_TEXT)
        if not pattern.fullmatch(name):
            yield wrong("metadata.name", name, text)
        if len(name) > (63 if short else 253):
            yield wrong("metadata.name", name, f"must be no more than {63 if short else 253} bytes")
    yield from labels(metadata.get("labels") or {}, "metadata.labels")


def labels(found: Json, path: str) -> Iterator[Cause]:
    """Check a map of labels."""
    for key, value in found.items():
        prefix, slash, name = key.rpartition("/")
        if not _QUALIFIED.fullmatch(name) or len(name) > 63 or (slash and not _SUBDOMAIN.fullmatch(prefix)):
            yield wrong(path, key, _KEY_TEXT)
        if value and not _QUALIFIED.fullmatch(value):
            yield wrong(path, value, _VALUE_TEXT)
        elif len(value) > 63:
            yield wrong(path, value, "must be no more than 63 bytes")


def _event_faults(obj: Json) -> Iterator[Cause]:
    for name, longest in _EVENT_LENGTHS.items():
        if not obj.get(name) and name != "note" and obj.get("eventTime"):
            yield required(name)
        if len(obj.get(name) or "") > longest:
            shown = "message" if name == "note" else name
            yield wrong(shown, "", f"can have at most {longest} characters")
    if not obj.get("eventTime"):
        yield required("eventTime")
    if obj.get("type") not in ("Normal", "Warning"):
        yield wrong("type", "", f"has invalid value: {obj.get('type', '')}")


def _pod_faults(obj: Json) -> Iterator[Cause]:
    yield from _pod_spec_faults(obj.get("spec") or {}, "spec")


def _pod_spec_faults(spec: Json, path: str) -> Iterator[Cause]:
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    for kind in ("initContainers", "containers"):
        seen: set[str] = set()
        for index, container in enumerate(spec.get(kind) or ()):
            yield from _container_faults(container, f"{path}.{kind}[{index}]", seen)
    policy = spec.get("restartPolicy")
    if policy not in ("Always", "OnFailure", "Never"):
        yield unsupported(f"{path}.restartPolicy", policy, ("Always", "OnFailure", "Never"))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration_faults(toleration, f"{path}.tolerations[{index}]")


def _container_faults(container: Json, path: str, seen: set[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{path}.name")
    elif not _LABEL.fullmatch(name):
        yield wrong(f"{path}.name", name, _LABEL_TEXT)
    elif name in seen:
        yield Cause(f"{path}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"')
    seen.add(name)
    if not container.get("image"):
        yield required(f"{path}.image")


def _toleration_faults(toleration: Json, path: str) -> Iterator[Cause]:
    operator = toleration.get("operator", "Equal")
    if not toleration.get("key") and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield wrong(f"{path}.operator", operator, text)
    if operator == "Exists" and toleration.get("value"):
        yield wrong(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if toleration.get("effect", "") not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        yield unsupported(f"{path}.effect", toleration["effect"], effects)


def _node_faults(obj: Json) -> Iterator[Cause]:
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        path = f"metadata.taints[{index}]"
        if not taint.get("key"):
            yield required(f"{path}.key")
        if taint.get("effect") not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
            yield unsupported(f"{path}.effect", taint.get("effect", ""), effects)


def _workload_faults(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    selector, template = spec.get("selector"), spec["template"]
    found = template["metadata"].get("labels") or {}
    if not selector:
        yield required("spec.selector")
    elif not object_selected(selector, found):
        text = "`selector` does not match template `labels`"
        yield wrong("spec.template.metadata.labels", found, text)
    if spec.get("replicas", 0) < 0:
        yield wrong("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    yield from _pod_spec_faults(template["spec"], "spec.template.spec")


def _controller_faults(obj: Json) -> Iterator[Cause]:
    if not obj["spec"].get("selector"):
        yield required("spec.selector")
    yield from _pod_spec_faults(obj["spec"]["template"]["spec"], "spec.template.spec")


def _priority_class_faults(obj: Json) -> Iterator[Cause]:
    name, value = obj["metadata"]["name"], obj.get("value", 0)
    if name.startswith("system-") and name not in ("system-node-critical", "system-cluster-critical"):
        text = "priority class names with 'system-' prefix are reserved for system use only"
        yield Cause("metadata.name", "FieldValueForbidden", f"Forbidden: {text}")
    elif value > 1_000_000_000 and not name.startswith("system-"):
        text = "maximum allowed value of a user defined priority is 1000000000"
        yield Cause("value", "FieldValueForbidden", f"Forbidden: {text}")


def _service_faults(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and spec["type"] != "ExternalName" and not headless:
        yield required("spec.ports")


def _storage_class_faults(obj: Json) -> Iterator[Cause]:
    if not obj.get("provisioner"):
        yield required("provisioner")


def _definition_faults(crd: Json) -> Iterator[Cause]:
    spec = crd["spec"]
    names = spec.get("names") or {}
    yield from (required(f"spec.{name}") for name in ("group", "scope", "versions") if not spec.get(name))
    yield from (required(f"spec.names.{name}") for name in ("plural", "kind") if not names.get(name))
    for index, version in enumerate(spec.get("versions") or ()):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")


_CHECKS: dict[str, Callable[[Json], Iterator[Cause]]] = {
    "pods": _pod_faults,
    "nodes": _node_faults,
    "services": _service_faults,
    "deployments.apps": _workload_faults,
    "replicasets.apps": _workload_faults,
    "statefulsets.apps": _workload_faults,
    "daemonsets.apps": _workload_faults,
    "replicationcontrollers": _controller_faults,
    "priorityclasses.scheduling.k8s.io": _priority_class_faults,
    "storageclasses.storage.k8s.io": _storage_class_faults,
    DEFINITIONS: _definition_faults,
}
