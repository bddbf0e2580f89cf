"""Warn about misspelt fields and invalid values in hand-written objects of a cluster.

Only fields that scheduling reads are checked. Large files are skipped: programs write them, and programs do not
misspell fields.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from msgspec import inspect

from policysched.app.checking.api_fields import ApiFault, field_faults, schema_of
from policysched.app.checking.pod_faults import pod_faults
from policysched.errors import UsageError
from policysched.model import objects as model
from policysched.model.decode import ObjectError
from policysched.model.objects import admission
from policysched.reading.documents import metadata_of, read
from policysched.reading.files import STDIN, read_text, shown
from policysched.reading.folders import expand

LARGEST: Final = 1 << 18
"""Largest file that is checked. Units: bytes."""
MOST: Final = 10
"""Largest number of warnings; further warnings are dropped."""
_REQUIRED: Final = "required value"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
Object = Mapping[str, Any]


def cluster_warnings(names: Iterable[str]) -> list[str]:
    """Return warnings about the objects in files and folders, one line each."""
    found = [warning for name in names for file in expand(name) for warning in _of_file(file)]
    more = len(found) - MOST
    return found[:MOST] + ([f"{more} more fields of the cluster have errors"] if more > 0 else [])


def _of_file(file: str) -> Iterator[str]:
    if file == STDIN or not os.path.isfile(file) or Path(file).stat().st_size > LARGEST:  # noqa: PTH113 - Path raises for long names
        return
    try:
        documents = read(read_text(file), shown(file))
    except UsageError:
        return  # a folder can contain files that are not objects
    for one in documents:
        metadata = metadata_of(one.object)
        if metadata.get("uid"):
            continue  # an API server has validated the object
        key = "/".join(str(metadata[name]) for name in ("namespace", "name") if metadata.get(name))
        for fault in _faults(one.object):
            error = ObjectError(str(one.object["kind"]), key, fault.reason, fault.field)
            yield str(one.refusal(fault.field, error, at_key=fault.is_unknown))


def _faults(raw: Object) -> Iterator[ApiFault]:
    kind, schema = str(raw["kind"]), schema_of(raw)
    if schema is None:
        return
    faults = pod_faults(raw) if kind == "Pod" else [*field_faults(raw, schema), *_taint_faults(raw), *_gang_faults(raw)]
    names = _names_read(kind)
    for one in faults:
        if one.is_unknown:
            if one.meant in names:
                yield one
        elif not one.reason.startswith((_REQUIRED, "expected ")):  # the decoder rejects wrong types that matter
            yield one


def _taint_faults(raw: Object) -> Iterator[ApiFault]:
    spec = raw.get("spec")
    taints = spec.get("taints") if isinstance(spec, Mapping) and raw["kind"] == "Node" else None
    for index, taint in enumerate(taints if isinstance(taints, list) else ()):
        effect = taint.get("effect") if isinstance(taint, Mapping) else None
        if effect not in _EFFECTS:
            allowed = ", ".join(f'"{one}"' for one in _EFFECTS)
            yield ApiFault(f"spec.taints[{index}].effect", f"unsupported value: supported values: {allowed}")


def _gang_faults(raw: Object) -> Iterator[ApiFault]:
    """Yield the fault of a PodGroup whose `minCount` is below 1; a missing `minCount` is 0."""
    found: Any = raw if raw["kind"] == "PodGroup" else None
    for name in ("spec", "schedulingPolicy", "gang"):
        found = found.get(name) if isinstance(found, Mapping) else None
    count = found.get("minCount", 0) if isinstance(found, Mapping) else 1
    if isinstance(count, int) and count < 1:
        yield ApiFault("spec.schedulingPolicy.gang.minCount", "must be greater than or equal to 1")


@lru_cache(maxsize=64)
def _names_read(kind: str) -> frozenset[str]:
    """Return the names of the fields that scheduling and admission read in objects of a kind."""
    shape = getattr(model, kind, None) or getattr(admission, kind, None)
    names: dict[type, list[str]] = {}
    if shape is not None:
        _collect(inspect.type_info(shape), names)
    return frozenset(name for of_struct in names.values() for name in of_struct)


def _collect(info: Any, names: dict[type, list[str]]) -> None:
    """Add the field names of a struct, and of all structs in its fields, to a dict by struct."""
    if isinstance(info, inspect.StructType):
        if info.cls not in names:
            names[info.cls] = [one.encode_name for one in info.fields]
            for one in info.fields:
                _collect(one.type, names)
        return
    parts = [getattr(info, name, None) for name in ("item_type", "value_type", "type")]
    for part in (*parts, *getattr(info, "item_types", ()), *getattr(info, "types", ())):
        if part is not None:
            _collect(part, names)
