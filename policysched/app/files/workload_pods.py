"""The pod that a dry-run schedules: a Pod in a file, or the pod that a workload's controller would create.

A template alone differs from what the scheduler gets: default spreading uses the selector of a pod's controller,
constraints use labels that controllers add, and a StatefulSet's pods have claims. Random name suffixes are omitted or
derived from the template. A placed pod, as kubectl prints it, becomes a new one of the same kind. This module does not
use the API.

Source: pkg/controller/controller_utils.go (GetPodFromTemplate), deployment/sync.go, statefulset/stateful_set_utils.go,
daemon/util/daemonset_util.go, job/indexed_job_utils.go, v1.36.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from policysched.errors import UsageError
from policysched.language.messages.suggestions import did_you_mean
from policysched.reading.documents import Document
from policysched.reading.files import exists

Object = dict[str, Any]
_VERSIONS: Final = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicationController": "v1",
    "Job": "batch/v1",
}
"""The apiVersion of kinds that can own a pod."""
HASH: Final = "pod-template-hash"
REVISION: Final = "controller-revision-hash"
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""Tolerations that every pod of a DaemonSet has."""
_HOOK: Final = "helm.sh/hook"
_TEST_HOOKS: Final = frozenset(("test", "test-success", "test-failure"))
_MOST_LISTED: Final = 5
"""Largest number of objects of a file that a message lists."""
_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


@dataclass(frozen=True, slots=True)
class ControlledPod:
    """A pod as its controllers create it."""

    pod: Object
    beside: tuple[Object, ...] = ()
    """Objects that controllers create with the pod: the ReplicaSet, the claims."""


def controlled(workload: Object, pod: Object, objects: Iterable[Mapping[str, Any]]) -> ControlledPod:
    """Return a pod with the additions of its workload's controllers.

    Args:
        workload: The workload, of any kind.
        pod: A pod of the workload's template, with name and namespace.
        objects: The cluster, in which the current ReplicaSet of a Deployment and existing pods of a StatefulSet are
            looked up.
    """
    make = _MAKERS.get(workload["kind"])
    return ControlledPod(pod) if make is None else make(workload, pod, objects)


def template_hash(template: object) -> str:
    """Return the label value that distinguishes pods of different templates."""
    digest = hashlib.sha256(json.dumps(template, sort_keys=True, default=str).encode()).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:10])


def _deployment(workload: Object, pod: Object, objects: Iterable[Mapping[str, Any]]) -> ControlledPod:
    replica_set = _current(workload, pod, objects) or _new_replica_set(workload, pod)
    labels = _mapping(replica_set["metadata"].get("labels"))
    made = _owned(pod, replica_set, {HASH: labels[HASH]} if HASH in labels else {})
    return ControlledPod(made, (replica_set,))


def _current(workload: Object, pod: Object, objects: Iterable[Mapping[str, Any]]) -> Object | None:
    """Return the ReplicaSet whose template equals the template of its Deployment; None if no such ReplicaSet exists."""
    for one in objects:
        if one["kind"] != "ReplicaSet" or not _controls(workload, one, pod["metadata"]["namespace"]):
            continue
        template = _mapping(_mapping(one.get("spec")).get("template"))
        if _is_part(_spec(workload).get("template"), template):
            return dict(one)
    return None


def _controls(workload: Object, replica_set: Mapping[str, Any], namespace: str) -> bool:
    metadata = _mapping(replica_set.get("metadata"))
    owners = map(_mapping, metadata.get("ownerReferences") or ())
    wanted = ("Deployment", workload["metadata"].get("name"))
    return (metadata.get("namespace") or "default") == namespace and any(
        (one.get("kind"), one.get("name")) == wanted and one.get("controller") for one in owners
    )


def _is_part(some: Any, whole: Any) -> bool:
    """Return whether a value from a file equals a value of the API server, ignoring defaults that the server added."""
    if isinstance(some, Mapping):
        return isinstance(whole, Mapping) and all(
            value in (None, {}, []) or (key in whole and _is_part(value, whole[key])) for key, value in some.items()
        )
    if isinstance(some, list):
        return isinstance(whole, list) and len(some) == len(whole) and all(map(_is_part, some, whole))
    return str(some) == str(whole)


def _new_replica_set(workload: Object, pod: Object) -> Object:
    spec = _spec(workload)
    template = _mapping(spec.get("template"))
    digest = template_hash(template)
    selector = _mapping(spec.get("selector"))
    chosen = {**selector, "matchLabels": {**_mapping(selector.get("matchLabels")), HASH: digest}}
    labels = {**_mapping(_mapping(template.get("metadata")).get("labels")), HASH: digest}
    name = f"{_name(workload, pod)}-{digest}"
    metadata = {"name": name, "namespace": pod["metadata"]["namespace"], "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": {"selector": chosen}}


def _replicated(workload: Object, pod: Object, _: Iterable[Mapping[str, Any]]) -> ControlledPod:
    return ControlledPod(_owned(pod, workload), (_placed(workload, pod),))


def _stateful_set(workload: Object, pod: Object, objects: Iterable[Mapping[str, Any]]) -> ControlledPod:
    """Return the pod that a StatefulSet would create next, with the pod's claims."""
    spec, name, namespace = _spec(workload), _name(workload, pod), pod["metadata"]["namespace"]
    there = {_mapping(one.get("metadata")).get("name") for one in objects if _is_pod_in(one, namespace)}
    start = _mapping(spec.get("ordinals")).get("start")
    ordinal = start if isinstance(start, int) else 0
    while f"{name}-{ordinal}" in there:
        ordinal += 1
    own = f"{name}-{ordinal}"
    labels = {
        "statefulset.kubernetes.io/pod-name": own,
        "apps.kubernetes.io/pod-index": str(ordinal),
        REVISION: f"{name}-{template_hash(spec.get('template'))}",
    }
    made = _owned(pod, workload, labels)
    made["metadata"] |= {"name": own}
    templates = [_mapping(one) for one in spec.get("volumeClaimTemplates") or ()]
    claims = [_claim(one, own, namespace) for one in templates]
    volumes = {str(_mapping(one.get("metadata")).get("name")): own for one in templates}
    made["spec"] = _mounted(made.get("spec"), volumes)
    return ControlledPod(made, (_placed(workload, pod), *claims))


def _claim(template: Object, pod: str, namespace: str) -> Object:
    metadata = _mapping(template.get("metadata"))
    made = {**metadata, "name": f"{metadata.get('name')}-{pod}", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": made, "spec": template.get("spec")}


def _mounted(spec: Any, volumes: Mapping[str, str]) -> Any:
    """Return a pod spec with volumes that use the given claims."""
    if not volumes:
        return spec
    others = [one for one in _mapping(spec).get("volumes") or () if _mapping(one).get("name") not in volumes]
    own = [{"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}} for name, pod in volumes.items()]
    return {**_mapping(spec), "volumes": [*others, *own]}


def _daemon_set(workload: Object, pod: Object, _: Iterable[Mapping[str, Any]]) -> ControlledPod:
    made = _owned(pod, workload, {REVISION: template_hash(_spec(workload).get("template"))})
    spec = _mapping(made.get("spec"))
    tolerated = (*_TOLERATED, _NETWORK) if spec.get("hostNetwork") else _TOLERATED
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in tolerated]
    made["spec"] = {**spec, "tolerations": [*(spec.get("tolerations") or ()), *added]}
    return ControlledPod(made)


def _job(workload: Object, pod: Object, _: Iterable[Mapping[str, Any]]) -> ControlledPod:
    return ControlledPod(_owned(pod, workload, _job_labels(_name(workload, pod))))


def _cron_job(workload: Object, pod: Object, _: Iterable[Mapping[str, Any]]) -> ControlledPod:
    """Return a pod of a CronJob's next Job; the Job's name ends with a placeholder for its number."""
    name = _name(workload, pod)
    job = {"kind": "Job", "metadata": {"name": name}}
    return ControlledPod(_owned(pod, job, _job_labels(name)))


def _job_labels(name: str) -> dict[str, str]:
    return {"batch.kubernetes.io/job-name": name, "job-name": name}


def _owned(pod: Object, owner: Object, labels: Mapping[str, str] | None = None) -> Object:
    metadata, name = pod["metadata"], _name(owner, pod)
    reference = {"apiVersion": _VERSIONS[owner["kind"]], "kind": owner["kind"], "name": name, "controller": True}
    made = {**metadata, "generateName": f"{name}-", "ownerReferences": [reference]}
    return {**pod, "metadata": made | {"labels": {**_mapping(metadata.get("labels")), **(labels or {})}}}


def _placed(workload: Object, pod: Object) -> Object:
    """Return a workload with apiVersion and namespace; a missing name is replaced by the name of the workload's pod."""
    metadata = {"name": _name(workload, pod), "namespace": pod["metadata"]["namespace"]}
    version = _VERSIONS[workload["kind"]]
    return {**workload, "apiVersion": version, "metadata": {**workload["metadata"], **metadata}}


def _name(owner: Object, pod: Object) -> str:
    return str(owner["metadata"].get("name") or pod["metadata"]["name"])


def _is_pod_in(one: Mapping[str, Any], namespace: str) -> bool:
    return one["kind"] == "Pod" and (_mapping(one.get("metadata")).get("namespace") or "default") == namespace


def _spec(workload: Object) -> Object:
    return _mapping(workload.get("spec"))


def _mapping(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


_MAKERS: Final[Mapping[str, Callable[[Object, Object, Iterable[Mapping[str, Any]]], ControlledPod]]] = {
    "Deployment": _deployment,
    "ReplicaSet": _replicated,
    "ReplicationController": _replicated,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "CronJob": _cron_job,
}


TEMPLATES: Final = {
    "Deployment": "spec.template",
    "ReplicaSet": "spec.template",
    "StatefulSet": "spec.template",
    "DaemonSet": "spec.template",
    "ReplicationController": "spec.template",
    "Job": "spec.template",
    "CronJob": "spec.jobTemplate.spec.template",
    "PodTemplate": "template",
}


@dataclass(frozen=True, slots=True)
class PodToPlace:
    """The pod that a dry-run schedules, with the document from which it was read or created."""

    object: Object
    document: Document
    template: str = ""
    """Path of the pod template in its document; empty for a Pod."""
    notes: tuple[str, ...] = ()
    """Notes about removed fields, one line each."""

    @property
    def note(self) -> str:
        """A note that the pod was created from a template; empty for a Pod."""
        if not self.template:
            return ""
        kind = self.document.object["kind"]
        return f"pod created from the template of {kind} {self.object['metadata']['name']}"


def chosen(name: str) -> tuple[str, str]:
    """Split `FILE#KIND/NAME` or `FILE#NAME` into file and choice, which is empty without `#`."""
    file, sign, choice = name.rpartition("#")
    return (file, choice) if sign and file and not exists(Path(name)) else (name, "")


def pod_of(documents: Sequence[Document], file: str, choice: str = "") -> PodToPlace:
    """Return the only pod or workload of a file; other objects in the file are ignored.

    Args:
        documents: The objects of the file.
        file: Name of the file, for messages.
        choice: `KIND/NAME` or `NAME` of the pod or workload, if the file has several.

    Raises:
        UsageError: there is no such object, there are several, or it has no name.
    """
    found = [one for one in documents if one.object["kind"] == "Pod" or one.object["kind"] in TEMPLATES]
    if not found:
        kinds = ", ".join(sorted({one.object["kind"] for one in documents}))
        raise UsageError(f"{file}: expected a Pod or a workload with a pod template, got only {kinds}")
    if choice:
        return _made(_named(found, file, choice))
    others = [one for one in found if not is_test(one)] or found
    if len(others) > 1:
        listed = ", ".join(f"{_label(one)} ({one.where})" for one in others[:_MOST_LISTED])
        more = f" and {len(others) - _MOST_LISTED} more" if len(others) > _MOST_LISTED else ""
        help_text = f"choose one, for example {file}#{_label(others[0])}"
        raise UsageError(f"{file}: expected one pod or workload, got {len(others)}: {listed}{more}; {help_text}")
    tests = [_label(one) for one in found if one not in others]
    return replace(_made(others[0]), notes=tuple(f"left out {one}: it is a test of a Helm chart" for one in tests))


def _named(found: Sequence[Document], file: str, choice: str) -> Document:
    kind, _, name = choice.rpartition("/")
    matching = [one for one in found if _own_name(one) == name and kind.lower() in ("", one.object["kind"].lower())]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UsageError(f"{file}: several objects are called {choice}: {', '.join(map(_label, matching))}")
    meant = did_you_mean(choice, map(_label, found)) or f"the file has {', '.join(map(_label, found[:_MOST_LISTED]))}"
    raise UsageError(f"{file}: no pod or workload {choice}; {meant}")


def is_test(document: Document) -> bool:
    """Return whether an object belongs to the tests of a Helm chart."""
    annotations = _mapping(_mapping(document.object.get("metadata")).get("annotations"))
    hooks = str(annotations.get(_HOOK) or "").split(",")
    return any(one.strip() in _TEST_HOOKS for one in hooks)


def _label(document: Document) -> str:
    return f"{document.object['kind']}/{_own_name(document)}"


def _own_name(document: Document) -> str:
    metadata = _mapping(document.object.get("metadata"))
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _made(document: Document) -> PodToPlace:
    kind = document.object["kind"]
    metadata = _mapping(document.object.get("metadata"))
    name = metadata.get("name") or str(metadata.get("generateName") or "").rstrip("-")
    if not name:
        raise UsageError(f"{document.where}: {kind} has no name")
    if kind == "Pod":
        return PodToPlace({**document.object, "metadata": _identity(metadata, metadata, name)}, document)
    path = TEMPLATES[kind]
    template = document.object
    for step in path.split("."):
        template = _mapping(template.get(step))
    if not template:
        raise UsageError(f"{document.where}: {kind} has no {path}")
    identity = _identity(_mapping(template.get("metadata")), metadata, name)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": identity, "spec": template.get("spec")}
    return PodToPlace(pod, document, path)


def _identity(own: Object, owner: Object, name: str) -> Object:
    return {**own, "name": name, "namespace": owner.get("namespace") or "default"}
