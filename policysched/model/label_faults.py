"""What is wrong with a requirement on a label, in the words of the API server.

Knows texts only. Whoever writes a selector has seen these sentences before and finds them on the web, so events and
statuses quote them to the letter; whether a text is valid at all is `policysched.model.names`' to say.

Source: apimachinery/pkg/labels/selector.go (NewRequirement), pkg/api/validate/content/kube.go and dns.go,
pkg/util/validation/field/errors.go, v0.36.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from policysched.model.names import NAME_LENGTH, SUBDOMAIN_LENGTH, is_name, is_subdomain

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
    """List what is wrong with a label's key."""
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
    """List what is wrong with a label's value."""
    faults = [_too_long(NAME_LENGTH)] if len(value) > NAME_LENGTH else []
    return [*faults, _VALUE_RULE] if value and not is_name(value) else faults


def requirement_fault(key: str, values: Sequence[str], of_operator: Iterable[str]) -> str:
    """Say all that is wrong with a requirement, the empty text where nothing is.

    Args:
        key: the label's key.
        values: the values, in the user's order.
        of_operator: what is wrong with the values for the operator, made by `invalid`.
    """
    faults = list(_faults(key, values, of_operator))
    return f"[{', '.join(faults)}]" if len(faults) > 1 else "".join(faults)


def invalid(field: str, value: str | Sequence[str], why: str) -> str:
    """Say of a field that its value, or the whole of its values, is not valid."""
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
