"""Detection of errors for which an API server would reject a pod or workload from a file."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from policysched.apimachinery.kinds import complete, validate
from policysched.apimachinery.resources import PODS, struct
from policysched.app.checking.api_fields import ApiFault, field_faults, schema_of
from policysched.app.checking.pod_names import pod_name_faults
from policysched.app.checking.pod_values import pod_value_faults
from policysched.errors import SeveralProblemsError, UsageError
from policysched.model.decode import ObjectError, plain
from policysched.reading.documents import Document, metadata_of

MOST: Final = 20
"""Largest number of errors reported for a pod; further errors are dropped."""
Object = Mapping[str, Any]


def pod_faults(pod: Object, claims: Collection[str] = ()) -> list[ApiFault]:
    """Return the errors of a pod; values are only checked if all fields have the right types.

    Args:
        pod: The pod. The pod of a template has no `kind`.
        claims: Names of the claim templates of a StatefulSet.
    """
    schema = struct("core.Pod") or {}
    faults = list(field_faults(pod, schema))
    if any(not one.is_unknown for one in faults):
        return faults
    return [*faults, *_value_faults(pod, faults, claims)]


def _value_faults(pod: Object, unknown: list[ApiFault], claims: Collection[str]) -> Iterator[ApiFault]:
    """Yield invalid values; a required field that is missing because of a misspelt name is not reported again.

    A container may lack an image, because users test pods before the image exists.
    """
    made = copy.deepcopy(plain("Pod", pod))
    made.setdefault("metadata", {}).setdefault("name", "x")
    made.setdefault("spec", {})
    complete(PODS, made)
    meant = {f"{one.field.rpartition('.')[0]}.{one.meant}" for one in unknown if one.meant}
    spec = made["spec"]
    values = (*pod_value_faults(spec, "spec"), *pod_name_faults(spec, "spec", claims))
    for cause in (*validate(PODS, made), *values):
        if cause.field not in meant and not (cause.reason == "FieldValueRequired" and cause.field.endswith(".image")):
            yield ApiFault(cause.field, cause.text[:1].lower() + cause.text[1:])


def refuse_pod_faults(document: Document, pod: Object, template: str) -> None:
    """Raise an error for a pod, or a workload, with unknown fields or invalid values.

    Args:
        document: The source of the object.
        pod: The pod created from the object.
        template: Path of the pod template in the object; empty for a Pod.

    Raises:
        UsageError: the object has errors; the text has one line for each.
    """
    found = pod_faults({**_written(document.object, template), "kind": "Pod"}, _claim_templates(document.object))
    prefix = f"{template}." if template else ""
    key = "/".join(str(pod["metadata"][name]) for name in ("namespace", "name"))
    problems = [_refusal(document, one, prefix, "Pod", key) for one in found]
    schema = schema_of(document.object) if template else None
    if schema is not None:
        kind = document.object["kind"]
        outer = (one for one in field_faults(document.object, schema) if not one.field.startswith(prefix))
        problems += [_refusal(document, one, "", kind, key) for one in outer]
    if problems:
        raise SeveralProblemsError(list(map(str, problems[:MOST])))


def _claim_templates(whole: Object) -> set[str]:
    """Return the names of the claim templates of a StatefulSet; ignore fields of wrong types."""
    spec = whole.get("spec")
    templates = spec.get("volumeClaimTemplates") if isinstance(spec, Mapping) else None
    found = templates if isinstance(templates, list) else []
    return {str(metadata_of(one).get("name")) for one in found if isinstance(one, Mapping)}


def _written(whole: Object, template: str) -> Object:
    """Return the value at a path of keys separated by dots; with an empty path, the whole object."""
    for name in filter(None, template.split(".")):
        whole = whole[name]
    return whole


def _refusal(document: Document, fault: ApiFault, prefix: str, kind: str, key: str) -> UsageError:
    error = ObjectError(kind, key, fault.reason, fault.field)
    return document.refusal(prefix + fault.field, error, at_key=fault.is_unknown)
