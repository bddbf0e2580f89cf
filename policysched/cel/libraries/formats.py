"""Named formats: validation of labels, names, dates and other texts.

Source: k8s.io/apimachinery v0.36 pkg/api/validate/content; k8s.io/kube-openapi pkg/validation/strfmt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Final

from policysched.cel.values.kubernetes import Format
from policysched.cel.values.urls import UrlError, parse_request_uri

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_OLD_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character"
)
_OLD_LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_KEY_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character"
)
_KEY_EXAMPLES: Final = ("MyName", "my.name", "123-abc")
# equivalent to the patterns in the messages, without backtracking
_LABELS: Final = re.compile(r"[a-z0-9]++(?:-++[a-z0-9]++)*+")
_SUBDOMAINS: Final = re.compile(r"[a-z0-9]++(?:-++[a-z0-9]++)*+(?:\.[a-z0-9]++(?:-++[a-z0-9]++)*+)*+")
_OLD_LABELS: Final = re.compile(r"[a-z][a-z0-9]*+(?:-++[a-z0-9]++)*+")
_KEYS: Final = re.compile(r"[A-Za-z0-9]++(?:[-_.]++[A-Za-z0-9]++)*+")
_VALUES: Final = re.compile(r"(?:[A-Za-z0-9]++(?:[-_.]++[A-Za-z0-9]++)*+)?")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)|(?:[A-Za-z0-9+/]{4})++")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOCK: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")


def _too_long(text: str, most: int) -> list[str]:
    return [f"must be no more than {most} characters"] if len(text.encode(errors="surrogatepass")) > most else []


def _rule(said: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{one}', " for one in examples)
    return f"{said} (e.g. {shown}regex used for validation is '{pattern}')"


def _label(text: str) -> list[str]:
    faults = _too_long(text, 63)
    if not _LABELS.fullmatch(text):
        dots = _SUBDOMAINS.fullmatch(text)
        faults.append("must not contain dots" if dots else _rule(_LABEL_RULE, _LABEL, "my-name", "123-abc"))
    return faults


def _subdomain(text: str) -> list[str]:
    faults = _too_long(text, 253)
    return faults if _SUBDOMAINS.fullmatch(text) else [*faults, _rule(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com")]


def _old_label(text: str) -> list[str]:
    faults = _too_long(text, 63)
    return (
        faults if _OLD_LABELS.fullmatch(text) else [*faults, _rule(_OLD_LABEL_RULE, _OLD_LABEL, "my-name", "abc-123")]
    )


def _qualified_name(text: str) -> list[str]:
    rule = _rule(_KEY_RULE, _KEY, *_KEY_EXAMPLES)
    prefix, slash, name = text.rpartition("/")
    if text.count("/") > 1:
        optional = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {rule}{optional}"]
    faults: list[str] = []
    if slash:
        faults += [f"prefix part {fault}" for fault in (_subdomain(prefix) if prefix else ["must be non-empty"])]
    if not name:
        faults.append("name part must be non-empty")
    else:
        faults += [f"name part {fault}" for fault in _too_long(name, 63)]
    return faults if _KEYS.fullmatch(name) else [*faults, f"name part {rule}"]


def _label_value(text: str) -> list[str]:
    faults = _too_long(text, 63)
    return faults if _VALUES.fullmatch(text) else [*faults, _rule(_VALUE_RULE, _VALUE, "MyValue", "my_value", "12345")]


def _prefix_of(faults: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Return the validation function of a name prefix, which may end with a dash, given that of the name."""
    return lambda text: faults(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except UrlError as error:
        return [str(error)]
    return []


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    year, month, day = map(int, text.split("-"))
    try:
        date(year or 2000, month, day)
    except ValueError:
        return False
    return True


def _is_moment(text: str) -> bool:
    day, _, clock = text.lower().partition("t")
    match = _CLOCK.fullmatch(clock.split("t")[0])
    if match is None or not _is_date(day):
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _unless(holds: Callable[[str], object], fault: str) -> Callable[[str], list[str]]:
    return lambda text: [] if holds(text) else [fault]


FORMATS: Final[dict[str, Format]] = {
    "dns1123Label": Format("DNS1123Label", _label),
    "dns1123Subdomain": Format("DNS1123Subdomain", _subdomain),
    "dns1035Label": Format("DNS1035Label", _old_label),
    "qualifiedName": Format("QualifiedName", _qualified_name),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix_of(_label)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix_of(_subdomain)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix_of(_old_label)),
    "labelValue": Format("LabelValue", _label_value),
    "uri": Format("URI", _uri),
    "uuid": Format("uuid", _unless(_UUID.fullmatch, "does not match the UUID format")),
    "byte": Format("byte", _unless(_BASE64.fullmatch, "invalid base64")),
    "date": Format("date", _unless(_is_date, "invalid date")),
    "datetime": Format("datetime", _unless(_is_moment, "invalid datetime")),
}
"""Kubernetes' named formats (`format.named`), by name."""
