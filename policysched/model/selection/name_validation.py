"""Validation of object names, resource names, label keys, label values and label requirements.

The scheduler counts cpu, memory, ephemeral-storage and "scalar" resources, and ignores all other names. These
predicates define scalar resources exactly as kube-scheduler does. Errors have the API server's texts.

Source: pkg/apis/core/v1/helper/helpers.go, pkg/scheduler/util/utils.go, apimachinery pkg/api/validate/content,
pkg/labels/selector.go (NewRequirement), v1.36.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

_NATIVE: Final = "kubernetes.io/"
_QUOTA: Final = "requests."
_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VALUES: Final = re.compile(r"(?:(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\n)*+")
"""Pattern of valid label values, each followed by a line break."""
_TOGETHER: Final = 1000
NAME_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253


def is_name(text: str) -> bool:
    """Return whether a text has only the characters of a Kubernetes name, with any length."""
    return _NAME.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Return whether a text has the form of a DNS subdomain, of any length."""
    return _SUBDOMAIN.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Return whether a text is a label key: a name, after an optional DNS subdomain and a slash."""
    return len(text) <= SUBDOMAIN_LENGTH + 1 + NAME_LENGTH and _is_qualified_name(text)


@lru_cache(maxsize=1 << 12)
def _is_qualified_name(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > SUBDOMAIN_LENGTH or _SUBDOMAIN.fullmatch(prefix) is None):
        return False
    return len(name) <= NAME_LENGTH and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Return whether a text is a valid label value; the empty text is valid."""
    return not text or (len(text) <= NAME_LENGTH and is_name(text))


def are_label_values(texts: Iterable[str]) -> bool:
    """Return whether all of many texts are valid label values.

    Cost: a tenth of testing each.
    """
    remaining = iter(texts)
    while some := [*islice(remaining, _TOGETHER)]:
        joined = "\n".join(some) + "\n"
        if _VALUES.fullmatch(joined) is None or joined.count("\n") != len(some):
            return False
    return True


def is_label_name(text: str) -> bool:
    """Return whether a text is a DNS label, the form of names of policies and rules."""
    return len(text) <= NAME_LENGTH and _LABEL.fullmatch(text) is not None


def is_prefixed_native_resource(name: str) -> bool:
    """Return whether a resource name has the prefix `kubernetes.io/` or a subdomain of it."""
    return _NATIVE in name


def is_huge_page_resource(name: str) -> bool:
    """Return whether a resource is huge pages of a size."""
    return name.startswith("hugepages-")


def is_attachable_volume_resource(name: str) -> bool:
    """Return whether a resource is a limit of attachable volumes."""
    return name.startswith("attachable-volumes-")


def is_extended_resource_name(name: str) -> bool:
    """Return whether a resource is an extended resource, which a device plugin or operator defines."""
    if "/" not in name or _NATIVE in name or name.startswith(_QUOTA):
        return False
    return is_qualified_name(_QUOTA + name)


@lru_cache(maxsize=1 << 13)
def is_scalar_resource_name(name: str) -> bool:
    """Return whether the scheduler counts a resource besides cpu, memory, ephemeral-storage and pods."""
    return (
        is_extended_resource_name(name)
        or is_huge_page_resource(name)
        or is_prefixed_native_resource(name)
        or is_attachable_volume_resource(name)
    )


def is_device_resource_name(name: str) -> bool:
    """Return whether dynamic resource allocation may provide a resource."""
    return is_extended_resource_name(name) or name.startswith(_DEVICE_CLASS)


def is_pod_level_resource(name: str) -> bool:
    """Return whether a pod may request a resource at pod level."""
    return name in {"cpu", "memory"} or is_huge_page_resource(name)


_CHARACTERS: Final = (
    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
)
_NAME_REGEX: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_RULE: Final = (
    f"must consist of {_CHARACTERS}'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME_REGEX}')"
)
_KEY_RULE: Final = (
    f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_VALUE_RULE: Final = (
    f"a valid label must be an empty string or consist of {_CHARACTERS}'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '({_NAME_REGEX})?')"
)
_DNS_REGEX: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_DNS_REGEX}')"
)
_EMPTY: Final = "must be non-empty"
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def key_faults(key: str) -> list[str]:
    """Return the error messages for a label key; none if the key is valid."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [_KEY_RULE]
    faults = [f"prefix part {fault}" for fault in _prefix_faults(prefix)] if slash else []
    if not name or len(name) > NAME_LENGTH:
        faults.append(f"name part {_too_long(NAME_LENGTH) if name else _EMPTY}")
    if not is_name(name):
        faults.append(f"name part {_NAME_RULE}")
    return faults


def value_faults(value: str) -> list[str]:
    """Return the error messages for a label value; none if the value is valid."""
    faults = [_too_long(NAME_LENGTH)] if len(value) > NAME_LENGTH else []
    return [*faults, _VALUE_RULE] if value and not is_name(value) else faults


def requirement_fault(key: str, values: Sequence[str], of_operator: Iterable[str]) -> str:
    """Return all errors of a label requirement as one text; empty if the requirement is valid.

    Args:
        key: the label's key.
        values: the values in the user's order.
        of_operator: errors of the values for the operator, made by `invalid`.
    """
    faults = list(_faults(key, values, of_operator))
    return f"[{', '.join(faults)}]" if len(faults) > 1 else "".join(faults)


def invalid(field: str, value: str | Sequence[str], why: str) -> str:
    """Return the error message for a field with an invalid value or an invalid list of values."""
    quoted = _ENCODER.encode(value if isinstance(value, str) else list(value) or None)
    return f"{field}: Invalid value: {quoted}: {why}"


def _faults(key: str, values: Sequence[str], of_operator: Iterable[str]) -> Iterator[str]:
    if wrong := key_faults(key):
        yield invalid("key", key, "; ".join(wrong))
    yield from of_operator
    for index, value in enumerate(values):
        if wrong := value_faults(value):
            yield invalid(f"values[{index}][{key}]", value, "; ".join(wrong))


def _prefix_faults(prefix: str) -> list[str]:
    if not prefix:
        return [_EMPTY]
    faults = [_too_long(SUBDOMAIN_LENGTH)] if len(prefix) > SUBDOMAIN_LENGTH else []
    return faults if is_subdomain(prefix) else [*faults, _SUBDOMAIN_RULE]


def _too_long(most: int) -> str:
    return f"must be no more than {most} bytes"
