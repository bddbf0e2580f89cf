"""The rules of built-in objects that a user meets: names, labels, containers, selectors, immutable fields.

It returns causes and raises nothing; it does not look at other objects. The list is not the API server's whole
one: it has what is easily got wrong, so that the mistake shows here and not first in a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import Cause, required, unsupported, wrong
from policysched.sandbox.objects.resources import ApiResource
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


def validate(resource: ApiResource, obj: Json) -> list[Cause]:
    """Check a new or changed object."""
    causes = [*_metadata(resource, obj["metadata"])]
    if resource.group == "events.k8s.io":
        causes += _event(obj)
    check = _CHECKS.get(resource.key)
    if check is not None and resource.custom is None:
        causes += check(obj)
    return causes


def _metadata(resource: ApiResource, metadata: Json) -> Iterator[Cause]:
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


def _event(obj: Json) -> Iterator[Cause]:
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


def _pod(obj: Json) -> Iterator[Cause]:
    yield from _pod_spec(obj.get("spec") or {}, "spec")


def _pod_spec(spec: Json, path: str) -> Iterator[Cause]:
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    for kind in ("initContainers", "containers"):
        seen: set[str] = set()
        for index, container in enumerate(spec.get(kind) or ()):
            yield from _container(container, f"{path}.{kind}[{index}]", seen)
    policy = spec.get("restartPolicy")
    if policy not in ("Always", "OnFailure", "Never"):
        yield unsupported(f"{path}.restartPolicy", policy, ("Always", "OnFailure", "Never"))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")


def _container(container: Json, path: str, seen: set[str]) -> Iterator[Cause]:
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


def _toleration(toleration: Json, path: str) -> Iterator[Cause]:
    operator = toleration.get("operator", "Equal")
    if not toleration.get("key") and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield wrong(f"{path}.operator", operator, text)
    if operator == "Exists" and toleration.get("value"):
        yield wrong(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if toleration.get("effect", "") not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        yield unsupported(f"{path}.effect", toleration["effect"], effects)


def _node(obj: Json) -> Iterator[Cause]:
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        path = f"metadata.taints[{index}]"
        if not taint.get("key"):
            yield required(f"{path}.key")
        if taint.get("effect") not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
            yield unsupported(f"{path}.effect", taint.get("effect", ""), effects)


def _workload(obj: Json) -> Iterator[Cause]:
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
    yield from _pod_spec(template["spec"], "spec.template.spec")


def _controller(obj: Json) -> Iterator[Cause]:
    if not obj["spec"].get("selector"):
        yield required("spec.selector")
    yield from _pod_spec(obj["spec"]["template"]["spec"], "spec.template.spec")


def _priority_class(obj: Json) -> Iterator[Cause]:
    name, value = obj["metadata"]["name"], obj.get("value", 0)
    if name.startswith("system-") and name not in ("system-node-critical", "system-cluster-critical"):
        text = "priority class names with 'system-' prefix are reserved for system use only"
        yield Cause("metadata.name", "FieldValueForbidden", f"Forbidden: {text}")
    elif value > 1_000_000_000 and not name.startswith("system-"):
        text = "maximum allowed value of a user defined priority is 1000000000"
        yield Cause("value", "FieldValueForbidden", f"Forbidden: {text}")


def _service(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    headless = spec.get("clusterIP") == "None"
    if not spec.get("ports") and spec["type"] != "ExternalName" and not headless:
        yield required("spec.ports")


def _storage_class(obj: Json) -> Iterator[Cause]:
    if not obj.get("provisioner"):
        yield required("provisioner")


def _definition(crd: Json) -> Iterator[Cause]:
    spec = crd["spec"]
    names = spec.get("names") or {}
    yield from (required(f"spec.{name}") for name in ("group", "scope", "versions") if not spec.get(name))
    yield from (required(f"spec.names.{name}") for name in ("plural", "kind") if not names.get(name))
    for index, version in enumerate(spec.get("versions") or ()):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")


_CHECKS: dict[str, Callable[[Json], Iterator[Cause]]] = {
    "pods": _pod,
    "nodes": _node,
    "services": _service,
    "deployments.apps": _workload,
    "replicasets.apps": _workload,
    "statefulsets.apps": _workload,
    "daemonsets.apps": _workload,
    "replicationcontrollers": _controller,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    "storageclasses.storage.k8s.io": _storage_class,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}
