"""Validation of names in a pod's spec: node labels, scheduling gates, volumes, enumerated values.

The messages are the API server's.

Source: pkg/apis/core/validation/validation.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from policysched.apimachinery.errors import Cause, required, shown, unsupported, wrong
from policysched.model.selection.name_validation import key_faults, value_faults

Object = Mapping[str, Any]
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_SYSTEMS: Final = ("linux", "windows")


def pod_name_faults(spec: Object, path: str, claims: Collection[str]) -> Iterator[Cause]:
    """Yield the invalid names of a pod's spec whose fields have the right types.

    Args:
        spec: The spec.
        path: Path of the spec in the object.
        claims: Names of the claim templates of a StatefulSet, whose pods have volumes of these names.
    """
    yield from _label_faults(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    yield from _gate_faults(spec, f"{path}.schedulingGates")
    system = spec.get("os")
    if system is not None and not system.get("name"):
        yield required(f"{path}.os.name")
    elif system is not None and system["name"] not in _SYSTEMS:
        yield unsupported(f"{path}.os.name", system["name"], _SYSTEMS)
    volumes = {one.get("name") for one in spec.get("volumes") or ()} | set(claims)
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield from _container_faults(container, f"{path}.{kind}[{index}]", volumes)


def _label_faults(labels: Mapping[str, str | None], path: str) -> Iterator[Cause]:
    for key, value in labels.items():
        yield from (wrong(path, key, text) for text in key_faults(key))
        yield from (wrong(path, value, text) for text in value_faults(value or ""))


def _gate_faults(spec: Object, path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name, place = gate.get("name") or "", f"{path}[{index}]"
        yield from (wrong(place, name, text) for text in key_faults(name))
        if name in seen:
            yield Cause(place, "FieldValueDuplicate", f"Duplicate value: {shown(name)}")
        seen.add(name)


def _container_faults(container: Object, path: str, volumes: Collection[str]) -> Iterator[Cause]:
    policy = container.get("imagePullPolicy") or _PULL_POLICIES[0]
    if policy not in _PULL_POLICIES:
        yield unsupported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES)
    for part in ("volumeMounts", "volumeDevices"):
        for index, mount in enumerate(container.get(part) or ()):
            name, place = mount.get("name") or "", f"{path}.{part}[{index}].name"
            if not name:
                yield required(place)
            elif name not in volumes:
                yield Cause(place, "FieldValueNotFound", f"Not found: {shown(name)}")
