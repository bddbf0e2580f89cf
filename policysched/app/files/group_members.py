"""The pods that a dry-run schedules together: the pods of a file that name one pod group, all pods of a workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from policysched.app.files.workload_pods import TEMPLATES, PodToPlace, is_test, pod_of
from policysched.model.kinds import FINISHED, POD_GROUPS, PODS, POLICIES, ApiKind, kind_of
from policysched.model.release import Release, with_pod_groups
from policysched.reading.documents import Document, metadata_of

Object = Mapping[str, Any]
MOST_COPIES: Final = 5000
"""Largest number of pods that are created from one workload."""
_COUNTS: Final = {
    "Job": ("spec", "parallelism"),
    "CronJob": ("spec", "jobTemplate", "spec", "parallelism"),
    "Deployment": ("spec", "replicas"),
    "ReplicaSet": ("spec", "replicas"),
    "ReplicationController": ("spec", "replicas"),
    "StatefulSet": ("spec", "replicas"),
}
"""Path of the field with the number of pods, by kind of workload; workloads of other kinds get one pod."""


def key_of(one: Object) -> tuple[str, str]:
    """Return namespace and name of an object."""
    metadata = metadata_of(one)
    return str(metadata.get("namespace") or "default"), str(metadata.get("name") or "")


def group_named_by(pod: Object) -> tuple[str, str] | None:
    """Return namespace and name of the pod group that a pod names; None if the pod names no group."""
    spec = pod.get("spec")
    named = spec.get("schedulingGroup") if isinstance(spec, Mapping) else None
    name = named.get("podGroupName") if isinstance(named, Mapping) else None
    return (key_of(pod)[0], str(name)) if name else None


def is_group(one: Object, key: tuple[str, str] | None) -> bool:
    """Return whether an object is the pod group with a namespace and name."""
    return kind_of(one) is POD_GROUPS and key_of(one) == key


def release_of_groups(objects: Iterable[Object], release: Release) -> Release | None:
    """Return a release with pod groups enabled, and with the feature gates about pod groups that an object needs.

    Args:
        objects: PodGroups, which may have a topology constraint or resource claims, SchedulingPolicies, and others.
        release: The release.

    Missing: None if the release does not schedule pod groups.
    """
    found = list(objects)
    by_topology = _any_has(found, POD_GROUPS, "schedulingConstraints") or _any_has(found, POLICIES, "placement")
    return with_pod_groups(
        release, by_topology=by_topology, shares_claims=_any_has(found, POD_GROUPS, "resourceClaims")
    )


def _any_has(objects: Iterable[Object], kind: ApiKind[Any], field: str) -> bool:
    """Return whether the spec of any object of a kind has a field."""
    specs = (one.get("spec") for one in objects if kind_of(one) is kind)
    return any(isinstance(spec, Mapping) and spec.get(field) for spec in specs)


def all_members(objects: Iterable[Object], key: str) -> list[Object]:
    """Return the pods of a cluster that name a pod group and have not ended.

    Args:
        objects: The objects of the cluster.
        key: The group: `namespace/name`.
    """
    pods = (one for one in objects if kind_of(one) is PODS and "/".join(group_named_by(one) or ()) == key)
    return [one for one in pods if (one.get("status") or {}).get("phase") not in FINISHED]


def pending_members(objects: Iterable[Object], pods: Sequence[Object]) -> Iterator[Object]:
    """Yield the pending pods of a cluster that name the group of some pods, except these pods themselves.

    Args:
        objects: The objects of the cluster.
        pods: Pods of one group; at least one.
    """
    key, scheduler, given = group_named_by(pods[0]), _scheduler_of(pods[0]), {key_of(one) for one in pods}
    for one in objects:
        if kind_of(one) is PODS and group_named_by(one) == key and key_of(one) not in given:
            is_pending = not (one["spec"].get("nodeName") or metadata_of(one).get("deletionTimestamp"))
            is_pending = is_pending and (one.get("status") or {}).get("phase") not in FINISHED
            if is_pending and _scheduler_of(one) == scheduler:
                yield one


def _scheduler_of(pod: Object) -> object:
    return pod["spec"].get("schedulerName")


def pods_to_place(documents: Sequence[Document], file: str, choice: str = "") -> list[PodToPlace]:
    """Return the only pod of a file, or all pods of the file if they name the same pod group.

    Args:
        documents: The objects of the file.
        file: Name of the file, for messages.
        choice: `KIND/NAME` or `NAME` of a pod or workload; empty for all.

    Raises:
        UsageError: there is no such object, there are several without a common group, or an object has no name.
    """
    found = [one for one in documents if one.object["kind"] == "Pod" or one.object["kind"] in TEMPLATES]
    chosen = [one for one in found if not is_test(one)]
    if not choice and len(chosen) > 1:
        wanted = [pod_of([one], file) for one in chosen]
        groups = {group_named_by(one.object) for one in wanted}
        if len(groups) == 1 and None not in groups:
            return wanted
    return [pod_of(documents, file, choice)]


def all_pods(wanted: PodToPlace) -> list[PodToPlace]:
    """Return all pods that a workload creates; for a Pod, return the pod.

    Raises:
        UsageError: the workload creates too many pods.
    """
    path = _COUNTS.get(wanted.document.object["kind"], ())
    count: Any = wanted.document.object
    for step in path:
        count = count.get(step) if isinstance(count, Mapping) else None
    if not path or not isinstance(count, int) or count < 2:
        return [wanted]
    if count > MOST_COPIES:
        raise wanted.document.refusal(".".join(path), f"a dry-run creates at most {MOST_COPIES} pods, got {count}")
    metadata = wanted.object["metadata"]
    named = ({**metadata, "name": f"{metadata['name']}-{index}"} for index in range(count))
    return [replace(wanted, object={**wanted.object, "metadata": one}) for one in named]
