"""Preparation of the objects in requests for storage: unknown fields, defaults, validation, API versions.

As in the API server, the request chooses whether unknown fields are an error, a warning or ignored. Defaults come first
from the schema, then from the rules of the kind. Validation reads one object alone; rules that need the cluster
(priority, service accounts) belong to admission. Validation covers common mistakes, not the API server's whole list.
Events are stored as core events and can be read as events.k8s.io. Versions of a custom resource differ only in
apiVersion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from policysched.apimachinery import Json, schema
from policysched.apimachinery.errors import Cause, StatusError, invalid, required, unsupported, wrong
from policysched.apimachinery.resources import DEFINITIONS, ApiResource, struct
from policysched.apimachinery.selectors import object_selected

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_EVENT_LENGTHS = {"reportingController": 253, "reportingInstance": 128, "action": 128, "reason": 128, "note": 1024}
_PATH_NAMES = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    f"'{_LABEL.pattern}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN.pattern}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'({_QUALIFIED.pattern})?')"
)
_KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_QUALIFIED.pattern}')"
)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POLICIES = ("Always", "OnFailure", "Never")
_CONTAINER_POLICIES = ("Always", "Never", "OnFailure")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_OPERATORS = ("Equal", "Exists")
_COMPARING = ("Lt", "Gt")
"""Toleration operators behind the alpha feature gate TaintTolerationComparisonOperators."""
_TO_NEW = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_TO_CORE = {new: old for old, new in _TO_NEW.items()}
_OMITTED: Json = {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []}
"""Metadata fields that are omitted from an object if they are empty."""


class StrictError(StatusError):
    """Error: a request with fieldValidation Strict contains an object with unknown fields."""

    def __init__(self, resource: ApiResource, why: str) -> None:
        super().__init__(400, _handled(resource, why))
        self.why = why


def check_kind(resource: ApiResource, obj: Any) -> Json:
    """Check kind and apiVersion of an object; return the object with these fields, without empty metadata fields."""
    if not isinstance(obj, dict):
        raise StatusError(
            400,
            "couldn't get version/kind; json parse error: json: cannot unmarshal the body into Go value of type struct",
        )
    kind, version = obj.get("kind") or resource.kind, obj.get("apiVersion") or resource.api_version
    if kind != resource.kind:
        text = f'"{kind}" is not the kind of {resource.qualified}, which is "{resource.kind}"'
        raise StatusError(400, f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {text}')
    if version != resource.api_version:
        raise StatusError(
            400,
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})",
        )
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        metadata = {name: value for name, value in metadata.items() if value != _OMITTED.get(name, ...)}
    return obj | {"kind": kind, "apiVersion": version, "metadata": metadata if metadata is not None else {}}


def drop_unknown(resource: ApiResource, obj: Json, field_validation: str) -> list[str]:
    """Remove the unknown fields of an object and return warnings; raise `StrictError` for fieldValidation Strict."""
    try:
        unknown = schema.prune(obj, resource.schema)
        if resource.custom is not None:
            metadata = schema.prune(obj["metadata"], struct("meta.ObjectMeta") or {})
            unknown = [f"metadata.{path}" for path in metadata] + unknown
    except StatusError as error:
        raise StatusError(error.code, _handled(resource, str(error))) from error
    warnings = [f'unknown field "{path}"' for path in unknown]
    if warnings and field_validation == "Strict":
        raise StrictError(resource, f"strict decoding error: {', '.join(warnings)}")
    return [] if field_validation == "Ignore" else warnings


def _handled(resource: ApiResource, why: str) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'


def validated(resource: ApiResource, obj: Json, changed: Sequence[Cause] = ()) -> None:
    """Raise a 422 error if an object is invalid or an update changed one of its immutable fields."""
    causes = validate(resource, obj)
    if resource.custom is not None:
        causes += schema.validate(obj, resource.schema)
    causes += changed
    if causes:
        raise invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), causes)


def outward(resource: ApiResource) -> Callable[[Json], Json] | None:
    """Return a function that converts from the storage version to the resource's version; None if they are equal."""
    if resource.group == "events.k8s.io":
        return lambda obj: {_TO_NEW.get(name, name): obj[name] for name in obj} | {"apiVersion": "events.k8s.io/v1"}
    if resource.custom is not None and not resource.custom.get("storage"):
        version = resource.api_version
        return lambda obj: obj | {"apiVersion": version}
    return None


def inward(resource: ApiResource, obj: Json) -> Json:
    """Convert an object from the resource's version to the storage version."""
    if resource.key == "events":
        if obj.get("apiVersion") == "events.k8s.io/v1":
            obj = {_TO_CORE.get(name, name): value for name, value in obj.items()}
        empty: Json = {"source": {}, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}
        empty |= {"involvedObject": {}, "reportingComponent": "", "reportingInstance": ""}
        return empty | obj | {"apiVersion": "v1"}
    if resource.custom is not None and resource.custom.get("storedVersion"):
        return obj | {"apiVersion": f"{resource.group}/{resource.custom['storedVersion']}"}
    return obj


def fill(target: Json, **values: Any) -> None:
    """Set those of the given fields that an object does not have; keyword names are field names."""
    for name, value in values.items():
        target.setdefault(name, value)


def complete(resource: ApiResource, obj: Json) -> None:
    """Set the defaults of an object: defaults of its schema, and special defaults of its kind."""
    schema.default(obj, resource.schema)
    if resource.custom is None and resource.key in _DEFAULTS:
        _DEFAULTS[resource.key](obj)


def all_containers(spec: Json) -> list[Json]:
    """Return the init containers and the containers of a pod."""
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _pod_spec(spec: Json) -> None:
    """Set the defaults in the spec of a pod or of a pod template."""
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
    """Return the validation errors of an object, by the rules of its schema and its kind."""
    check = _event_faults if resource.group == "events.k8s.io" else _CHECKS.get(resource.key)
    return [*_metadata_faults(resource, obj["metadata"]), *(check(obj) if check and resource.custom is None else ())]


def _metadata_faults(resource: ApiResource, metadata: Json) -> Iterator[Cause]:
    name = metadata.get("name", "")
    short = resource.key in ("namespaces", "services")
    if resource.plural not in _PATH_NAMES:
        pattern, text = (_LABEL, _LABEL_TEXT) if short else (_SUBDOMAIN, _SUBDOMAIN_TEXT)
        if not pattern.fullmatch(name):
            yield wrong("metadata.name", name, text)
        if len(name) > (63 if short else 253):
            yield wrong("metadata.name", name, f"must be no more than {63 if short else 253} bytes")
    for key, value in (metadata.get("labels") or {}).items():
        prefix, slash, name = key.rpartition("/")
        if not _QUALIFIED.fullmatch(name) or len(name) > 63 or (slash and not _SUBDOMAIN.fullmatch(prefix)):
            yield wrong("metadata.labels", key, _KEY_TEXT)
        if value and not _QUALIFIED.fullmatch(value):
            yield wrong("metadata.labels", value, _VALUE_TEXT)
        elif len(value) > 63:
            yield wrong("metadata.labels", value, "must be no more than 63 bytes")


def _event_faults(obj: Json) -> Iterator[Cause]:
    for name, longest in _EVENT_LENGTHS.items():
        if not obj.get(name) and name != "note" and obj.get("eventTime"):
            yield required(name)
        if len(obj.get(name) or "") > longest:
            yield wrong("message" if name == "note" else name, "", f"can have at most {longest} characters")
    if not obj.get("eventTime"):
        yield required("eventTime")
    if obj.get("type") not in ("Normal", "Warning"):
        yield wrong("type", "", f"has invalid value: {obj.get('type', '')}")


def _pod_spec_faults(spec: Json, path: str) -> Iterator[Cause]:
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    for kind in ("initContainers", "containers"):
        seen: set[str] = set()
        for index, container in enumerate(spec.get(kind) or ()):
            yield from _container_faults(container, f"{path}.{kind}[{index}]", seen)
    policy = spec.get("restartPolicy")
    if policy not in _POLICIES:
        yield unsupported(f"{path}.restartPolicy", policy, _POLICIES)
    preemption = spec.get("preemptionPolicy", _PREEMPTION_POLICIES[0])
    if preemption not in _PREEMPTION_POLICIES:
        yield unsupported(f"{path}.preemptionPolicy", preemption, _PREEMPTION_POLICIES)
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
    policy = container.get("restartPolicy", _CONTAINER_POLICIES[0])
    if policy not in _CONTAINER_POLICIES:
        yield unsupported(f"{path}.restartPolicy", policy, _CONTAINER_POLICIES)


def _toleration_faults(toleration: Json, path: str) -> Iterator[Cause]:
    operator = toleration.get("operator") or "Equal"
    if not toleration.get("key") and operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield wrong(f"{path}.operator", operator, text)
    if operator not in _OPERATORS:
        choices = (*_OPERATORS, *_COMPARING) if operator in _COMPARING else _OPERATORS
        yield unsupported(f"{path}.operator", operator, choices)
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield wrong(f"{path}.effect", toleration.get("effect", ""), text)
    if operator == "Exists" and toleration.get("value"):
        yield wrong(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
    if toleration.get("effect", "") not in ("", *_EFFECTS):
        yield unsupported(f"{path}.effect", toleration["effect"], _EFFECTS)


def _node_faults(obj: Json) -> Iterator[Cause]:
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        path = f"metadata.taints[{index}]"
        if not taint.get("key"):
            yield required(f"{path}.key")
        if taint.get("effect") not in _EFFECTS:
            yield unsupported(f"{path}.effect", taint.get("effect", ""), _EFFECTS)


def _template_faults(obj: Json) -> Iterator[Cause]:
    if not obj["spec"].get("selector"):
        yield required("spec.selector")
    yield from _pod_spec_faults(obj["spec"]["template"]["spec"], "spec.template.spec")


def _workload_faults(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    selector, found = spec.get("selector"), spec["template"]["metadata"].get("labels") or {}
    if selector and not object_selected(selector, found):
        yield wrong("spec.template.metadata.labels", found, "`selector` does not match template `labels`")
    if spec.get("replicas", 0) < 0:
        yield wrong("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    yield from _template_faults(obj)


def _priority_class_faults(obj: Json) -> Iterator[Cause]:
    name, value = obj["metadata"]["name"], obj.get("value", 0)
    if name.startswith("system-") and name not in ("system-node-critical", "system-cluster-critical"):
        text = "priority class names with 'system-' prefix are reserved for system use only"
        yield Cause("metadata.name", "FieldValueForbidden", f"Forbidden: {text}")
    elif value > 1_000_000_000 and not name.startswith("system-"):
        text = "maximum allowed value of a user defined priority is 1000000000"
        yield Cause("value", "FieldValueForbidden", f"Forbidden: {text}")


def _pod_group_faults(obj: Json) -> Iterator[Cause]:
    policy = obj["spec"]["schedulingPolicy"]
    stated = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if not stated:
        yield wrong("spec.schedulingPolicy", "", "must specify one of: `basic`, `gang`")
    elif len(stated) > 1:
        yield wrong("spec.schedulingPolicy", "{`basic`, `gang`}", "must specify exactly one of: `basic`, `gang`")
    gang = policy.get("gang")
    least = 1 if gang is None else gang.get("minCount", 0)
    if not least:
        yield required("spec.schedulingPolicy.gang.minCount")
    elif least < 1:
        yield wrong("spec.schedulingPolicy.gang.minCount", least, "must be greater than or equal to 1")
    claims = obj["spec"].get("resourceClaims") or ()
    if len(claims) > _MOST_GROUP_CLAIMS:
        yield _too_many("spec.resourceClaims", len(claims), _MOST_GROUP_CLAIMS)
    for index, claim in enumerate(claims):
        yield from _group_claim_faults(claim, f"spec.resourceClaims[{index}]")


def _group_claim_faults(claim: Json, path: str) -> Iterator[Cause]:
    if not claim.get("name"):
        yield required(f"{path}.name")
    members = ("resourceClaimName", "resourceClaimTemplateName")
    stated, quoted = [name for name in members if claim.get(name) is not None], ", ".join(f"`{one}`" for one in members)
    if not stated:
        yield wrong(path, "", f"must specify one of: {quoted}")
    elif len(stated) > 1:
        yield wrong(path, f"{{{quoted}}}", f"must specify exactly one of: {quoted}")


def _service_faults(obj: Json) -> Iterator[Cause]:
    spec = obj["spec"]
    if not spec.get("ports") and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")


def _definition_faults(crd: Json) -> Iterator[Cause]:
    spec = crd["spec"]
    names = spec.get("names") or {}
    yield from (required(f"spec.{name}") for name in ("group", "scope", "versions") if not spec.get(name))
    yield from (required(f"spec.names.{name}") for name in ("plural", "kind") if not names.get(name))
    for index, version in enumerate(spec.get("versions") or ()):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")


_MOST_USERS = 256
"""Largest number of entries in a claim's reservedFor; more entries are a validation error."""
_MOST_GROUP_CLAIMS = 4
"""Largest number of resource claims of a PodGroup; more are a validation error."""


def _too_many(path: str, count: int, most: int) -> Cause:
    return Cause(path, "FieldValueTooMany", f"Too many: {count}: must have at most {most} items")


def _claim_faults(claim: Json) -> Iterator[Cause]:
    users = (claim.get("status") or {}).get("reservedFor") or ()
    if len(users) > _MOST_USERS:
        yield _too_many("status.reservedFor", len(users), _MOST_USERS)


_CHECKS: dict[str, Callable[[Json], Iterator[Cause]]] = {
    "pods": lambda obj: _pod_spec_faults(obj.get("spec") or {}, "spec"),
    "nodes": _node_faults,
    "services": _service_faults,
    "deployments.apps": _workload_faults,
    "replicasets.apps": _workload_faults,
    "statefulsets.apps": _workload_faults,
    "daemonsets.apps": _workload_faults,
    "replicationcontrollers": _template_faults,
    "podgroups.scheduling.k8s.io": _pod_group_faults,
    "priorityclasses.scheduling.k8s.io": _priority_class_faults,
    "resourceclaims.resource.k8s.io": _claim_faults,
    "storageclasses.storage.k8s.io": lambda obj: iter([] if obj.get("provisioner") else [required("provisioner")]),
    DEFINITIONS: _definition_faults,
}
