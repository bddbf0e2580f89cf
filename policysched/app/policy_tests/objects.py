"""Conversion of nodes, pods and clusters in short form into objects as kubectl prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from policysched.app.checking.pod_faults import MOST, pod_faults, refuse_pod_faults
from policysched.app.files.workload_pods import pod_of
from policysched.app.policy_tests.file_format import Amounts, PlacedShortPod, ShortCluster, ShortNode, ShortPod
from policysched.app.policy_tests.reading import PolicyTestSource
from policysched.errors import SeveralProblemsError, UsageError
from policysched.model.decode import ObjectError
from policysched.model.quantity import QuantityError, parse, value
from policysched.reading.documents import metadata_of
from policysched.reading.files import exists
from policysched.reading.loading import load

Object = Mapping[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace and name of an object."""
NUMBER: Final = "*"
"""Placeholder in a name for the number of an object that a `count` creates."""
LARGEST: Final = 64 << 20
"""Largest estimated memory of the objects that `count` fields create; more is an error. Units: bytes."""
BESIDE: Final = 256
_ALLOCATABLE: Final = {"cpu": "4", "memory": "16Gi", "pods": "110"}
_TAINT: Final = re.compile(r"(?P<key>[^=:]+)(?:=(?P<value>[^:]*))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)")


def cluster_objects(source: PolicyTestSource, cluster: str | ShortCluster | None, path: str) -> list[Object]:
    """Return the objects of a cluster in a test.

    Args:
        source: The test file, for relative names and errors.
        cluster: A file name, or a cluster in short form.
        path: Path of the cluster in the source.

    Raises:
        UsageError: a file cannot be read, or a part is malformed.
    """
    if cluster is None:
        return []
    if isinstance(cluster, str):
        return file_objects(source, cluster, path)
    _refuse_floods(source, cluster, path)
    found: dict[tuple[str, str, str], Object] = {}
    for place, objects in _parts(source, cluster, path):
        for one in objects:
            key = key_of(one)
            if key in found:
                name = "/".join(filter(None, key[1:]))
                raise source.refusal(place, f'{key[0].lower()} "{name}" is there twice')
            found[key] = one
    return [*found.values()]


def _parts(source: PolicyTestSource, cluster: ShortCluster, path: str) -> Iterator[tuple[str, Iterable[Object]]]:
    """Yield the objects of each part of a cluster, with the path of the part."""
    for index, name in enumerate(cluster.files):
        place = f"{path}.files[{index}]"
        yield place, file_objects(source, name, place)
    for index, node in enumerate(cluster.nodes):
        place = f"{path}.nodes[{index}]"
        yield place, _nodes(source, node, place)
    for index, pod in enumerate(cluster.pods):
        place = f"{path}.pods[{index}]"
        yield place, _placed(source, pod, place)
    for index, one in enumerate(cluster.objects):
        place = f"{path}.objects[{index}]"
        if not isinstance(one.get("kind"), str) or not isinstance(one.get("metadata"), dict):
            raise source.refusal(place, "expected an object with a kind and metadata")
        yield place, [one]


def _refuse_floods(source: PolicyTestSource, cluster: ShortCluster, path: str) -> None:
    """Raise an error for a cluster whose `count` fields would create objects of too large a total size."""
    parts = [(f"nodes[{index}]", one.count, msgspec.json.encode(one)) for index, one in enumerate(cluster.nodes)]
    parts += [(f"pods[{index}]", one.count, msgspec.json.encode(one)) for index, one in enumerate(cluster.pods)]
    made = 0
    for place, count, text in parts:
        made += count * (BESIDE + len(text))
        if made > LARGEST:
            raise source.refusal(f"{path}.{place}", "cluster is too large for a test")


def file_objects(source: PolicyTestSource, name: str, path: str) -> list[Object]:
    """Read the objects of a file named in a test.

    Raises:
        UsageError: the file cannot be read; the text has the position of its name in the test.
    """
    place = source.folder / name
    if not exists(place):
        raise source.refusal(path, f"{place}: no such file")
    return [one.object for one in load([str(place)])]


def pod_object(source: PolicyTestSource, short: ShortPod, path: str, name: str = "new") -> dict[str, Any]:
    """Return the pod of a test.

    Raises:
        UsageError: its file cannot be read or does not contain the pod.
    """
    if short.file is not None:
        return _from_file(source, short, path)
    pod = _pod(source, short, short.name or name, path)
    _refuse_faults(source, pod, path)
    return pod


def _refuse_faults(source: PolicyTestSource, pod: Object, path: str) -> None:
    """Raise an error for a pod in short form that an API server would reject.

    Raises:
        UsageError: the pod has errors.
    """
    problems = []
    for one in pod_faults(pod):
        field = one.field.removeprefix("metadata.")
        error = ObjectError("Pod", str(pod["metadata"]["name"]), one.reason, one.field)
        problems.append(str(source.refusal(f"{path}.{field}", error, at_key=one.is_unknown)))
    if problems:
        raise SeveralProblemsError(problems[:MOST])


def _from_file(source: PolicyTestSource, short: ShortPod, path: str) -> dict[str, Any]:
    place = source.folder / str(short.file)
    if not exists(place):
        raise source.refusal(f"{path}.file", f"{place}: no such file")
    written = msgspec.to_builtins(short)
    if extra := sorted(set(written) - {"file", "name"}):
        raise source.refusal(f"{path}.{extra[0]}", "field cannot be set together with `file`")
    named = [one for one in load([str(place)]) if short.name in (None, one.object["metadata"].get("name"))]
    if not named:
        raise source.refusal(f"{path}.name", f'{place}: no object "{short.name}"')
    wanted = pod_of(named, str(place))
    refuse_pod_faults(wanted.document, wanted.object, wanted.template)
    pod = wanted.object
    return {**pod, "metadata": {"namespace": "default", **pod["metadata"]}}


def _nodes(source: PolicyTestSource, short: ShortNode, path: str) -> Iterator[Object]:
    taints = [_taint(source, text, f"{path}.taints[{index}]") for index, text in enumerate(short.taints)]
    allocatable = _ALLOCATABLE | _quantities(source, short.allocatable, f"{path}.allocatable")
    images = _quantities(source, short.images, f"{path}.images")
    for name, number in _names(short.name, short.count):
        labels = {key: value.replace(NUMBER, number) for key, value in short.labels.items()}
        spec: dict[str, Any] = {"taints": taints} if taints else {}
        if short.cordoned:
            spec["unschedulable"] = True
        status: dict[str, Any] = {
            "allocatable": allocatable,
            "conditions": [{"type": kind, "status": status} for kind, status in _conditions(short).items()],
        }
        if images:
            status["images"] = [{"names": [image], "sizeBytes": value(size)} for image, size in images.items()]
        metadata = _metadata(name, {"kubernetes.io/hostname": name} | labels, short.annotations, short.created)
        yield {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _conditions(short: ShortNode) -> dict[str, str]:
    """Return the status of each condition of a node, by type."""
    return {"Ready": "True" if short.ready else "False"} | short.conditions


def _placed(source: PolicyTestSource, short: PlacedShortPod, path: str) -> Iterator[Object]:
    for pod in pods_of(source, short, short.count, path):
        if short.node is not None:
            pod["spec"]["nodeName"] = short.node
            pod["status"] = {"phase": "Running"}
        yield pod


def pods_of(source: PolicyTestSource, short: ShortPod, count: int, path: str) -> Iterator[dict[str, Any]]:
    """Yield as many pods as `count` states, each from a pod in short form.

    Raises:
        UsageError: the pod has no name, or has errors.
    """
    if short.file is not None:
        raise source.refusal(f"{path}.file", "`file` is not allowed here; list the file in `cluster.files`")
    if short.name is None:
        raise source.refusal(path, "pod has no name")
    for number, (name, _) in enumerate(_names(short.name, count)):
        pod = _pod(source, short, name, path)
        if number == 0:
            _refuse_faults(source, pod, path)
        yield pod


def _pod(source: PolicyTestSource, short: ShortPod, name: str, path: str) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": short.image}
    requests = _quantities(source, short.requests, f"{path}.requests")
    if requests:
        # Only resources of Kubernetes itself can be overcommitted.
        limits = {name: amount for name, amount in requests.items() if "/" in name}
        container["resources"] = {"requests": requests, "limits": limits}
    spec: dict[str, Any] = {"schedulerName": short.scheduler_name, "containers": [container]}
    if short.node_selector:
        spec["nodeSelector"] = short.node_selector
    if short.priority is not None:
        spec["priority"] = short.priority
    metadata = _metadata(name, short.labels, short.annotations, short.created) | {"namespace": short.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec | short.spec}


def _metadata(
    name: str, labels: Mapping[str, str], annotations: Mapping[str, str], created: str | None
) -> dict[str, Any]:
    optional = {"labels": dict(labels), "annotations": dict(annotations), "creationTimestamp": created}
    return {"name": name} | {key: value for key, value in optional.items() if value}


def _names(name: str, count: int) -> Iterator[tuple[str, str]]:
    """Yield the names of objects created by a count, with their numbers."""
    if count == 1 and NUMBER not in name:
        yield name, "1"
        return
    template = name if NUMBER in name else f"{name}-{NUMBER}"
    for number in map(str, range(1, count + 1)):
        yield template.replace(NUMBER, number), number


def _taint(source: PolicyTestSource, text: str, path: str) -> dict[str, str]:
    match = _TAINT.fullmatch(text)
    if match is None:
        raise source.refusal(path, f'expected a taint as key=value:NoSchedule, got "{text}"')
    return {key: value for key, value in match.groupdict().items() if value}


def _quantities(source: PolicyTestSource, amounts: Amounts, path: str) -> dict[str, str]:
    """Return the resource amounts of an object in short form as quantities in text form.

    Raises:
        UsageError: an amount is not a quantity, or is negative.
    """
    for name, amount in amounts.items():
        try:
            wrong = parse(amount).mantissa < 0
        except QuantityError:
            wrong = True
        if wrong:
            problem = f'expected a quantity such as 500m, 2 or 8Gi, got "{amount!s:.40}"'
            raise source.refusal(f"{path}.{name}", problem)
    return {name: str(amount) for name, amount in amounts.items()}


def key_of(one: Object) -> Key:
    """Return kind, namespace and name of an object.

    Raises:
        UsageError: the object has no name.
    """
    metadata = metadata_of(one)
    if not metadata.get("name"):
        raise UsageError(f"{one.get('kind')} of the cluster has no name")
    namespace = metadata.get("namespace") or ("default" if one["kind"] in _NAMESPACED else "")
    return one["kind"], str(namespace), str(metadata["name"])


_NAMESPACED: Final = frozenset(("Pod", "PodGroup"))
"""Kinds that can be looked up by a name without a namespace."""
