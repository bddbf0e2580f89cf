"""The pods that a dry-run schedules together: the pods of a file that name one pod group, all pods of a workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from policysched.app.files.workload_pods import TEMPLATES, PodToPlace, is_test, pod_of
from policysched.model.kinds import POD_GROUPS, kind_of
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
"""Path of the number of pods in a workload; other workloads are treated as one pod."""


def key_of(one: Object) -> tuple[str, str]:
    """Return namespace and name of an object."""
    metadata = metadata_of(one)
    return str(metadata.get("namespace") or "default"), str(metadata.get("name") or "")


def group_named_by(pod: Object) -> tuple[str, str] | None:
    """Return namespace and name of the pod group that a pod names; None if it names none."""
    spec = pod.get("spec")
    named = spec.get("schedulingGroup") if isinstance(spec, Mapping) else None
    name = named.get("podGroupName") if isinstance(named, Mapping) else None
    return (key_of(pod)[0], str(name)) if name else None


def is_group(one: Object, key: tuple[str, str] | None) -> bool:
    """Return whether an object is the pod group with a namespace and name."""
    return kind_of(one) is POD_GROUPS and key_of(one) == key


def pods_to_place(documents: Sequence[Document], file: str, choice: str = "") -> list[PodToPlace]:
    """Return the only pod of a file, or its pods if all of them name the same pod group.

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
    """Return the pods that a workload creates; else the pod.

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
