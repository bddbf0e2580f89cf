"""Simulation of kube-apiserver's default admission plugins for pods, pod groups and claims: `Admission`.

Only effects that scheduling reads are simulated. The plugins are Priority, RuntimeClass, LimitRanger,
DefaultTolerationSeconds and DefaultStorageClass. An object with a UID comes from an API server and was already
admitted; only an unbound claim still gets the default class. If a plugin would reject a pod, a note is added.

Source: plugin/pkg/admission/{runtimeclass,limitranger,defaulttolerationseconds,storage/storageclass/setdefault},
pkg/apis/core/v1/defaults.go (SetDefaults_LimitRangeItem), pkg/util/tolerations, v1.36 and v1.37.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import to_builtins

from policysched.model.admission_kinds import LIMIT_RANGES, RUNTIME_CLASSES, admission_kind_of
from policysched.model.decode import decode_storage
from policysched.model.defaults import fill_pod, priority_classes
from policysched.model.kinds import POD_GROUPS, ApiKind, fill
from policysched.model.objects import OwnerReference, PersistentVolumeClaim, Pod
from policysched.model.objects.admission import LimitRange
from policysched.model.objects.meta import ResourceList, seconds_of
from policysched.model.objects.storage import BETA_CLASS, claim_name
from policysched.model.release import DEFAULT, Release
from policysched.reading.documents import metadata_of
from policysched.state.cluster import Cluster

Object = dict[str, Any]
IS_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_NOT_READY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_EVICTING: Final = (None, "", "NoExecute")
_SECONDS: Final = 300
"""Time for which the default tolerations let a pod stay on a node that is not ready. Units: seconds."""


class Admission:
    """Sets defaults of objects, and changes them as the admission plugins of an API server with given objects would.

    Args:
        objects: The cluster, each object by itself.
        release: The Kubernetes release of the API server.

    Raises:
        ObjectError: a priority class, a runtime class or a limit range is malformed.
    """

    def __init__(self, objects: Iterable[Mapping[str, Any]], release: Release = DEFAULT) -> None:
        given = list(objects)
        self.release = release
        self.classes = priority_classes(given)
        runtime_classes = map(RUNTIME_CLASSES.decode, _of(RUNTIME_CLASSES, given))
        self._runtime_classes = {one.metadata.name: one for one in runtime_classes}
        limit_ranges = map(LIMIT_RANGES.decode, _of(LIMIT_RANGES, given))
        self._defaults: dict[str, list[tuple[ResourceList, ResourceList]]] = {}
        for one in sorted(limit_ranges, key=lambda one: one.metadata.name):
            namespace = one.metadata.namespace or "default"
            self._defaults.setdefault(namespace, []).append(_container_defaults(one))
        self._storage_class = _default_storage_class(one for one in given if one.get("kind") == "StorageClass")
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes, one line each: objects that admission plugins need but do not find, and rejections by the plugins."""
        return tuple(self._notes)

    def complete_pod(self, raw: Mapping[str, Any]) -> Object:
        """Return a pod with defaults; a new pod is also changed as admission plugins would change it.

        Raises:
            ObjectError: the pod is malformed, or its priority class does not exist.
        """
        return fill_pod(raw, self.classes, self.release, self._admit)

    def _admit(self, pod: Object) -> None:
        """Change a new pod as admission plugins would."""
        if pod["metadata"].get("uid"):
            return
        self._apply_runtime_class(pod)
        for limits, requests in self._defaults.get(pod["metadata"]["namespace"], ()):
            _default_resources(pod["spec"], limits, requests)
        _tolerate_unready_nodes(pod["spec"])

    def complete(self, raw: Mapping[str, Any]) -> Object:
        """Return an object of any kind but Pod with defaults; a claim that is not bound gets the default class.

        Raises:
            ObjectError: the object is malformed.
        """
        made = fill(raw, self.classes)
        spec = made.get("spec")
        if made.get("kind") == POD_GROUPS.kind and isinstance(spec, dict):
            self._prioritize(spec)
        if made.get("kind") == "PersistentVolumeClaim" and self._storage_class and isinstance(spec, dict):
            annotations = metadata_of(made).get("annotations")
            annotated = isinstance(annotations, dict) and BETA_CLASS in annotations
            # The volume controller also gives the class to older claims that are unbound.
            if not annotated and not (metadata_of(made).get("uid") and spec.get("volumeName")):
                spec.setdefault("storageClassName", self._storage_class)
        return made

    def _prioritize(self, group: Object) -> None:
        """Set the priority in the spec of a pod group from its priority class."""
        name = group.get("priorityClassName")
        known = self.classes.by_name.get(str(name)) if name else self.classes.default
        if name and known is None:
            self._note(f'PriorityClass "{name}" of a pod group is not in the cluster')
        if known is not None:
            group.setdefault("priority", known.value)

    def ephemeral_claims(self, pod: Pod) -> Iterable[PersistentVolumeClaim]:
        """Return the claims that a controller creates from the templates in a pod's generic ephemeral volumes."""
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
        )
        for volume in pod.spec.volumes:
            if volume.ephemeral is None:
                continue
            template = volume.ephemeral.volume_claim_template
            metadata = {**_mapping(template.get("metadata")), "name": claim_name(pod, volume)}
            metadata |= {"namespace": pod.metadata.namespace, "ownerReferences": [to_builtins(owner)]}
            raw = {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": _mapping(template.get("spec"))}
            yield _decode_claim(self.complete(raw))

    def _apply_runtime_class(self, pod: Object) -> None:
        spec, name = pod["spec"], pod["spec"].get("runtimeClassName")
        if not name:
            return
        found = self._runtime_classes.get(name)
        if found is None:
            self._note(
                f'RuntimeClass "{name}" is not in the cluster: its overhead, node selector and tolerations are unknown'
            )
            return
        overhead, selector = found.overhead.pod_fixed, found.scheduling.node_selector
        if overhead:
            spec.setdefault("overhead", dict(overhead))
        wrong = sorted(key for key, value in spec.get("nodeSelector", {}).items() if selector.get(key, value) != value)
        if wrong:
            self._note(
                f'an API server refuses the pod: its nodeSelector "{wrong[0]}" differs from RuntimeClass "{name}"'
            )
        if selector:
            spec["nodeSelector"] = {**selector, **spec.get("nodeSelector", {})}
        for one in map(to_builtins, found.scheduling.tolerations):
            if one not in spec.setdefault("tolerations", []):
                spec["tolerations"].append(one)

    def _note(self, text: str) -> None:
        self._notes[text] = None


def take_ephemeral_claims(cluster: Cluster, pod: Pod, admission: Admission) -> None:
    """Add the claims of a pod's generic ephemeral volumes to a cluster, if the pod has no UID yet."""
    if pod.metadata.uid:
        return
    for claim in admission.ephemeral_claims(pod):
        known = cluster.storage.claims.get(claim.key)
        if known is None or _is_of_pod(known, pod.metadata.name):
            cluster.take(claim)


def _is_of_pod(claim: PersistentVolumeClaim, pod: str) -> bool:
    """Return whether a claim was created for an existing pod of the same name as the pod to evaluate."""
    return any(one.controller and (one.kind, one.name) == ("Pod", pod) for one in claim.metadata.owner_references)


_decode_claim: Final = partial(decode_storage, PersistentVolumeClaim)


def _of(kind: ApiKind[Any], objects: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    return (one for one in objects if admission_kind_of(one) is kind)


def _container_defaults(limit_range: LimitRange) -> tuple[ResourceList, ResourceList]:
    """Return the default limits and requests that a LimitRange sets in containers."""
    limits: ResourceList = {}
    requests: ResourceList = {}
    for item in limit_range.spec.limits:
        if item.type == "Container":
            limited = {**item.max, **item.default}
            limits |= limited
            requests |= {**item.min, **limited, **item.default_request}
    return limits, requests


def _default_resources(spec: Object, limits: ResourceList, requests: ResourceList) -> None:
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        resources = container.setdefault("resources", {})
        for name, defaults in (("limits", limits), ("requests", requests)):
            if defaults:
                resources[name] = {**defaults, **resources.get(name, {})}


def _tolerate_unready_nodes(spec: Object) -> None:
    tolerations = spec.setdefault("tolerations", [])
    for key in _NOT_READY:
        if not any(one.get("key") in (None, "", key) and one.get("effect") in _EVICTING for one in tolerations):
            wanted = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
            tolerations.append(wanted)


def _default_storage_class(classes: Iterable[Mapping[str, Any]]) -> str:
    """Return the name of the newest default storage class; empty if there is none."""
    found = []
    for metadata in map(metadata_of, classes):
        annotations = _mapping(metadata.get("annotations"))
        if any(annotations.get(name) == "true" for name in IS_DEFAULT):
            found.append((-(seconds_of(metadata.get("creationTimestamp")) or 0.0), str(metadata.get("name"))))
    return min(found, default=(0.0, ""))[1]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
