"""The kinds of objects that only admission plugins of the API server read, not the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from policysched.model.decode import check_quantities, decode, key_of
from policysched.model.kinds import ApiKind
from policysched.model.objects.admission import LimitRange, RuntimeClass


def _decode_runtime_class(raw: Any) -> RuntimeClass:
    made = decode(RuntimeClass, "RuntimeClass", raw)
    check_quantities("RuntimeClass", made.metadata.name, iter([("overhead.podFixed", made.overhead.pod_fixed)]))
    return made


def _decode_limit_range(raw: Any) -> LimitRange:
    made = decode(LimitRange, "LimitRange", raw)
    for index, item in enumerate(made.spec.limits):
        lists = {
            "default": item.default,
            "defaultRequest": item.default_request,
            "max": item.max,
            "min": item.min,
            "maxLimitRequestRatio": item.max_limit_request_ratio,
        }
        named = ((f"spec.limits[{index}].{name}", amounts) for name, amounts in lists.items())
        check_quantities("LimitRange", key_of(made.metadata), named)
    return made


RUNTIME_CLASSES: Final[ApiKind[RuntimeClass]] = ApiKind(
    "node.k8s.io/v1", "RuntimeClass", "runtimeclasses", _decode_runtime_class, namespaced=False
)
LIMIT_RANGES: Final[ApiKind[LimitRange]] = ApiKind("v1", "LimitRange", "limitranges", _decode_limit_range)
ADMISSION_KINDS: Final = (RUNTIME_CLASSES, LIMIT_RANGES)
"""The kinds of objects that only admission plugins read."""


def admission_kind_of(raw: Mapping[str, Any]) -> ApiKind[Any] | None:
    """Return the kind of an object that only admission plugins read; None for another object."""
    for kind in ADMISSION_KINDS:
        if raw.get("kind") == kind.kind and (raw.get("apiVersion") or kind.api_version) == kind.api_version:
            return kind
    return None
