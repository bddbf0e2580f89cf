"""Decodes JSON or dictionaries, from the API server or from files, into the structs of Kubernetes objects.

An object is rejected as a whole if a field has the wrong type or a quantity that scheduling reads is malformed: half an
object would be scheduled with wrong numbers. A second, slower attempt accepts null as absent, because Go writes some
empty lists so. It reads unpaired surrogates as Go does, and cuts text that is nested too deeply for the decoder: no
field that is read is nested so deeply, and API servers do store such `managedFields`. The second attempt is skipped if
a field has another wrong type.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from policysched.errors import UsageError
from policysched.model.objects import (
    Container,
    ContainerStatus,
    CSIStorageCapacity,
    Metadata,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ResourceList,
    ResourceRequirements,
    Stored,
)
from policysched.model.quantity import QuantityError, parse
from policysched.reading.lenient_json import UNREADABLE, identity, shallow, without_halves, without_managed_fields

T = TypeVar("T")
S = TypeVar("S", bound=Stored)
Lists = Iterator[tuple[str, ResourceList]]
"""Pairs of a field path and the resource list (requests, limits, …) at this path in an object."""

_DECODERS: Final[dict[type, msgspec.json.Decoder[Any]]] = {}
_WRONG_TYPE: Final = re.compile("Expected `[^`]*`, got `(?!null`)")
_WHOLE: Final = msgspec.json.Decoder(msgspec.Raw)
_NO_RESOURCES: Final = ResourceRequirements()
_GOT: Final = re.compile("got `([^`]*)`")
_ANY_KEY: Final = "[...]"
_TYPES_OF: Final = {"object": ("dict",), "array": ("list",), "null": ("NoneType",)}
"""For types that the decoder names differently than Python: the decoder's name, and the names in Python."""
_CAPITAL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class ObjectError(UsageError):
    """Raised if an object is malformed; the message names the object and the field."""

    def __init__(self, kind: str, key: str, reason: str, field: str = "") -> None:
        place = f"{field}: " if field else ""
        super().__init__(f'{_CAPITAL.sub(" ", kind).lower()} "{key}": {place}{reason}')
        self.kind = kind
        self.key = key
        self.reason = reason
        self.field = field


def decode(shape: type[T], kind: str, raw: bytes | Mapping[str, Any]) -> T:
    """Decode JSON or a dictionary into the struct of a kind of objects.

    Args:
        shape: type of the struct.
        kind: the object's kind, for messages.
        raw: the object.

    Raises:
        ObjectError: the text is not JSON, or a field has the wrong type.
    """
    try:
        return _decoder(shape).decode(raw) if isinstance(raw, bytes) else msgspec.convert(raw, shape)
    except UNREADABLE as error:
        _refuse_wrong_type(kind, raw, error)
    return _second_attempt(shape, kind, raw)


def decode_pod(raw: bytes | Mapping[str, Any]) -> Pod:
    """Decode a Pod from JSON or a dictionary.

    Raises:
        ObjectError: the pod is malformed.
    """
    pod = decode(Pod, "Pod", raw)
    check_pod(pod)
    return pod


def check_pod(pod: Pod) -> None:
    """Check that all quantities of a pod are well-formed.

    Raises:
        ObjectError: a quantity is malformed.
    """
    try:
        _read_quantities(pod)
    except QuantityError:
        check_quantities("Pod", pod.key, _pod_lists(pod))  # raises the error with the field


def decode_node(raw: bytes | Mapping[str, Any]) -> Node:
    """Decode a Node from JSON or a dictionary.

    Raises:
        ObjectError: the node is malformed.
    """
    node = decode(Node, "Node", raw)
    check_quantities("Node", node.metadata.name, iter([("status.allocatable", node.status.allocatable)]))
    return node


def decode_storage(shape: type[S], raw: bytes | Mapping[str, Any]) -> S:
    """Decode a volume, a claim, a storage class or a CSI object from JSON or a dictionary.

    Raises:
        ObjectError: the object is malformed.
    """
    kind = shape.__name__
    made = decode(shape, kind, raw)
    check_quantities(kind, key_of(made.metadata), _storage_lists(made))
    return made


def key_of(metadata: Metadata) -> str:
    """Return the key of an object: `namespace/name`, or the name for a cluster-scoped object."""
    return "/".join(filter(None, (metadata.namespace, metadata.name)))


def without_nulls(value: Any) -> Any:
    """Return a copy of a JSON value without null fields and items.

    Timestamps that YAML parsed become texts again.
    """
    kind = type(value)
    if kind is str or kind is int or kind is bool:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(item) for item in value if item is not None]
    if isinstance(value, datetime.date):
        return value.isoformat().replace("+00:00", "Z")
    return value


def _decoder(shape: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type; cached, because creating a decoder takes far longer than using it."""
    decoder = _DECODERS.get(shape)
    if decoder is None:
        decoder = _DECODERS[shape] = msgspec.json.Decoder(shape)
    return decoder


def first_attempt(shape: type[T], kind: str, raw: bytes) -> T | None:
    """Decode JSON strictly, which is fast; return None if the slower, more tolerant decoding may succeed.

    Raises:
        ObjectError: no other attempt can succeed.
    """
    try:
        return _decoder(shape).decode(raw)
    except UNREADABLE as error:
        _refuse_wrong_type(kind, raw, error)
    return None


def _refuse_wrong_type(kind: str, raw: bytes | Mapping[str, Any], error: Exception) -> None:
    """Raise ObjectError if a field of JSON has a value of a wrong type; null is not a wrong type."""
    if not isinstance(error, msgspec.ValidationError) or not isinstance(raw, bytes):
        return
    if _WRONG_TYPE.match(str(error)) and is_json(raw):
        made = None
        with suppress(*UNREADABLE):
            made = msgspec.json.decode(raw)
        raise _wrong_type(kind, identity(raw).key, error, made) from error


def _second_attempt(shape: type[T], kind: str, raw: bytes | Mapping[str, Any]) -> T:
    made = plain(kind, raw)
    try:
        return msgspec.convert(made, shape)
    except msgspec.ValidationError as error:
        raise _wrong_type(kind, _key(made), error, made) from error


def is_json(raw: bytes) -> bool:
    """Return whether a text is valid JSON, without decoding its values."""
    try:
        _WHOLE.decode(raw)
    except UNREADABLE:
        return False
    return True


def _wrong_type(kind: str, key: str, error: msgspec.ValidationError, made: Any = None) -> ObjectError:
    what, field = _problem(str(error))
    got = _GOT.search(what)
    return ObjectError(kind, key, _reason(what), _exact(made, field, got[1]) if got else field)


def _exact(value: Any, field: str, got: str) -> str:
    """Replace `[...]` in a field path of the decoder by the key of the malformed value; return the path."""
    before, unnamed, after = field.partition(_ANY_KEY)
    held = _at(value, before) if unnamed else None
    if not isinstance(held, dict):
        return field
    for key, item in held.items():
        rest = _exact(item, after, got)
        if type(_at(item, rest)).__name__ in _TYPES_OF.get(got, (got,)):
            return f"{before}.{key}{rest}"
    return field


def _at(value: Any, field: str) -> Any:
    """Return the value at a field path; None if it is missing. Keys of maps may contain dots."""
    while field and isinstance(value, dict | list):
        if isinstance(value, list):
            index, _, field = field.removeprefix("[").partition("]")
            value = value[int(index)] if index.isdecimal() and int(index) < len(value) else None
            continue
        rest = field.removeprefix(".")
        known = [key for key in value if rest == key or rest.startswith((f"{key}.", f"{key}["))]
        if not known:
            return None
        key = max(known, key=len)
        value, field = value[key], rest[len(key) :]
    return None if field else value


def plain(kind: str, raw: bytes | Mapping[str, Any]) -> Any:
    """Return an object as a dictionary without nulls and, for JSON text, without parts that are nested too deeply.

    Raises:
        ObjectError: the text is not JSON, or is nested too deeply.
    """
    try:
        return without_nulls(
            msgspec.json.decode(without_halves(shallow(without_managed_fields(raw)))) if isinstance(raw, bytes) else raw
        )
    except (msgspec.MsgspecError, UnicodeError) as error:
        key = identity(raw).key if isinstance(raw, bytes) else ""
        raise ObjectError(kind, key, f"not valid JSON: {error}") from error
    except RecursionError as error:
        raise ObjectError(kind, _key(raw), "nested too deeply") from error


def _problem(text: str) -> tuple[str, str]:
    """Split an error message of the decoder into the problem and the field path."""
    what, at, place = text.rpartition(" - at ")
    if not at or not place.endswith("`"):
        return text, ""
    return what, place.removeprefix("`key` in ").strip("`").removeprefix("$").removeprefix(".")


def _reason(what: str) -> str:
    expected, mismatch, got = what.removeprefix("Expected `").removesuffix("`").rpartition("`, got `")
    if not mismatch:
        return what[:1].lower() + what[1:]
    kinds = expected.split(" | ")
    if "str" in kinds and "float" not in kinds:
        return f"expected text, got {got}: quote it"
    return f"expected {expected}, got {got}"


def _key(plain: Any) -> str:
    metadata = plain.get("metadata") if isinstance(plain, dict) else None
    if not isinstance(metadata, dict):
        return ""
    parts = (metadata.get(part) for part in ("namespace", "name"))
    return "/".join(str(part) for part in parts if part and isinstance(part, str | int))


def check_quantities(kind: str, key: str, lists: Lists) -> None:
    """Raise ObjectError with the field path of the first malformed quantity of an object.

    Raises:
        ObjectError: a quantity is malformed; the error contains its path.
    """
    for path, resources in lists:
        for name, amount in resources.items():
            try:
                parse(amount)
            except QuantityError as error:
                raise ObjectError(kind, key, str(error), f"{path}.{name}".removeprefix(".")) from error


def _read_quantities(pod: Pod) -> None:
    """Parse all quantities of a pod to check them, without determining the paths of malformed quantities.

    Raises:
        QuantityError: a quantity is malformed.
    """
    spec, status = pod.spec, pod.status
    several = [one.resources for one in (*spec.containers, *spec.init_containers)]
    lists = [spec.overhead, status.allocated_resources]
    for one in (*status.container_statuses, *status.init_container_statuses):
        several.append(one.resources or _NO_RESOURCES)
        lists.append(one.allocated_resources)
    for requirements in (*several, spec.resources, status.resources):
        if requirements is not None:
            lists += requirements.requests, requirements.limits
    for amounts in filter(None, lists):
        for amount in amounts.values():
            parse(amount)


def _pod_lists(pod: Pod) -> Lists:
    spec, status = pod.spec, pod.status
    yield from _container_lists("spec.containers", spec.containers)
    yield from _container_lists("spec.initContainers", spec.init_containers)
    yield "spec.overhead", spec.overhead
    yield from _requirement_lists("spec.resources", spec.resources)
    yield from _status_lists("status.containerStatuses", status.container_statuses)
    yield from _status_lists("status.initContainerStatuses", status.init_container_statuses)
    yield from _requirement_lists("status.resources", status.resources)
    yield "status.allocatedResources", status.allocated_resources


def _container_lists(path: str, containers: list[Container]) -> Lists:
    for index, one in enumerate(containers):
        yield from _requirement_lists(f"{path}[{index}].resources", one.resources)


def _status_lists(path: str, statuses: list[ContainerStatus]) -> Lists:
    for index, one in enumerate(statuses):
        yield from _requirement_lists(f"{path}[{index}].resources", one.resources)
        yield f"{path}[{index}].allocatedResources", one.allocated_resources


def _requirement_lists(path: str, resources: ResourceRequirements | None) -> Lists:
    if resources is not None:
        yield f"{path}.requests", resources.requests
        yield f"{path}.limits", resources.limits


def _storage_lists(made: Stored) -> Lists:
    if isinstance(made, PersistentVolume):
        yield "spec.capacity", made.spec.capacity
    elif isinstance(made, PersistentVolumeClaim):
        yield "spec.resources.requests", made.spec.resources.requests
    elif isinstance(made, CSIStorageCapacity):
        sizes = {"capacity": made.capacity, "maximumVolumeSize": made.maximum_volume_size}
        yield "", {name: amount for name, amount in sizes.items() if amount is not None}
