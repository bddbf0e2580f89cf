"""Objects with one very long list or map, for each list and map in the model's structs of a kind.

A nested collection comes in three forms: one long collection, many holders of a collection with one entry, and as many
holders as entries. New fields of the structs are covered automatically.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isqrt
from typing import Any, Final

from msgspec import inspect

from bench.workloads import HOST, ZONE
from policysched.model import objects
from policysched.model.objects import Volume

Object = dict[str, Any]
Path = tuple[str, ...]
KINDS: Final = (
    "Pod",
    "Node",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
)
FILLED: Final[Mapping[str, Any]] = {
    "operator": "In",
    "topologyKey": ZONE,
    "whenUnsatisfiable": "DoNotSchedule",
    "maxSkew": 1,
    "weight": 1,
    "labelSelector": {"matchLabels": {"app": "w"}},
    "restartPolicy": "Always",
    "containerPort": 80,
    "resources": {"requests": {"cpu": "1m"}},
    "requests": {"cpu": "1m"},
    "values": ["v"],
    "monitors": ["m"],
}
"""Fields of the entries with the same value in all entries."""
NUMBERED: Final = frozenset(("name", "key", "image", "uid", "volumeID", "pdName", "iqn", "claimName", "reference"))
"""Fields of the entries with a different value in each entry."""
MOST_PORTS: Final = 60_000
ENTRY: Final = "*"
"""Part of a path that represents the entries of a list."""


def _collections(kind: inspect.Type, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of the lists and maps in a type."""
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _collections(one, path)
    elif isinstance(kind, inspect.ListType):
        yield path
        yield from _collections(kind.item_type, (*path, ENTRY))
    elif isinstance(kind, inspect.DictType):
        yield path
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            yield from _collections(field.type, (*path, field.encode_name))


TYPES: Final = {kind: inspect.type_info(getattr(objects, kind)) for kind in KINDS}
FORMS: Final[Mapping[str, Sequence[tuple[Path, str]]]] = {
    kind: [
        (path, form)
        for path in _collections(of_kind)
        for form in (("long", "many", "square") if ENTRY in path else ("long",))
    ]
    for kind, of_kind in TYPES.items()
}
"""Path and form of each tested collection, by kind."""


def shown(part: object) -> str:
    """Return the name of a test's parameter."""
    if not isinstance(part, tuple):
        return str(part)
    path, form = part
    return f"{'.'.join(path)}-{form}"


def made(kind: str, path: Path, form: str, total: int) -> Object:
    """Return an object with this number of entries in a collection, or in all nested collections together."""
    obj: Object = _filled(TYPES[kind], path, _sizes(path, form, total), ())
    name = "node-0" if kind in {"Node", "CSINode"} else "p-0"
    metadata = obj.setdefault("metadata", {})
    metadata |= {"name": name, "namespace": "default", "uid": name}
    if kind == "Pod":
        metadata.setdefault("labels", {"app": "w"})
        obj.setdefault("spec", {}).setdefault("containers", [{"name": "c", "image": "i"}])
    elif kind == "Node":
        metadata.setdefault("labels", {HOST: name, ZONE: "zone-0"})
        obj.setdefault("status", {}).setdefault("allocatable", {"cpu": "4", "memory": "8Gi", "pods": "110"})
    return obj


def everything(total: int) -> Object:
    """Return a pod whose outermost collections are all long."""
    pod: Object = {}
    for path, _ in FORMS["Pod"]:
        if ENTRY not in path:
            _merge(pod, made("Pod", path, "long", total))
    return pod


def _merge(into: Object, other: Object) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        elif key not in into or (isinstance(value, list) and len(value) > len(into[key])):
            into[key] = value


def _sizes(path: Path, form: str, total: int) -> list[int]:
    """Return the number of entries of each collection on a path, the outermost first."""
    within = path.count(ENTRY)
    if not within:
        return [total]
    if form == "long":
        return [1] * within + [total]
    if form == "many":
        return [total] + [1] * within
    side = isqrt(total)
    return [side] + [1] * (within - 1) + [side]


def _filled(kind: inspect.Type, path: Path, sizes: Sequence[int], place: tuple[int, ...]) -> Any:
    if isinstance(kind, inspect.UnionType):
        kind = next(one for one in kind.types if not isinstance(one, inspect.NoneType))
    if isinstance(kind, inspect.ListType):
        return [_filled(kind.item_type, path[1:], sizes[1:], (*place, number)) for number in range(sizes[0])]
    if isinstance(kind, inspect.DictType):
        return {f"example.com/{_text((*place, number))}": "1" for number in range(sizes[0])}
    if isinstance(kind, inspect.StructType):
        return _struct(kind, path, sizes, place)
    return _text(place)


def _struct(kind: inspect.StructType, path: Path, sizes: Sequence[int], place: tuple[int, ...]) -> Object:
    obj: Object = {}
    for field in kind.fields:
        name = field.encode_name
        if path and name == path[0]:
            obj[name] = _filled(field.type, path[1:], sizes, place)
        elif name == "hostPort":
            obj[name] = 1 + sum(place) % MOST_PORTS
        elif place and name in NUMBERED and not (kind.cls is Volume and name == "image"):
            obj[name] = _text(place)
        elif place and name in FILLED:
            obj[name] = FILLED[name]
    return obj


def _text(place: tuple[int, ...]) -> str:
    return "-".join(["x", *map(str, place)])
