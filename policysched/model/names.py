"""Tell the kinds of resource names apart, and which texts are label keys and values.

Knows strings only. The scheduler counts cpu, memory, ephemeral-storage and what it calls scalar resources,
and overlooks every other name; these predicates draw that line, so they follow its definitions to the
letter.

Source: pkg/apis/core/v1/helper/helpers.go, pkg/scheduler/util/utils.go, apimachinery
pkg/api/validate/content, v1.36.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_NATIVE: Final = "kubernetes.io/"
_QUOTA: Final = "requests."
_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
NAME_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253


def is_name(text: str) -> bool:
    """Tell whether a text has the letters of a name, however long."""
    return _NAME.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Tell whether a text has the form of a DNS subdomain, however long."""
    return _SUBDOMAIN.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Tell whether a text is a label key: a name, after an optional DNS subdomain and a slash."""
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > SUBDOMAIN_LENGTH or not is_subdomain(prefix)):
        return False
    return len(name) <= NAME_LENGTH and is_name(name)


def is_label_value(text: str) -> bool:
    """Tell whether a text is the value of a label; the empty one is."""
    return not text or (len(text) <= NAME_LENGTH and is_name(text))


def is_label_name(text: str) -> bool:
    """Tell whether a text is a DNS label, as names of policies and rules are."""
    return len(text) <= NAME_LENGTH and _LABEL.fullmatch(text) is not None


def is_prefixed_native_resource(name: str) -> bool:
    """Tell whether the name stands in the `kubernetes.io/` namespace or one below it."""
    return _NATIVE in name


def is_native_resource(name: str) -> bool:
    """Tell whether Kubernetes itself defines the resource: no prefix at all, or its own."""
    return "/" not in name or is_prefixed_native_resource(name)


def is_huge_page_resource(name: str) -> bool:
    """Tell whether the resource is huge pages of one size."""
    return name.startswith("hugepages-")


def is_attachable_volume_resource(name: str) -> bool:
    """Tell whether the resource counts attachable volumes."""
    return name.startswith("attachable-volumes-")


def is_extended_resource_name(name: str) -> bool:
    """Tell whether the resource is one that a device plugin or an operator made up."""
    if is_native_resource(name) or name.startswith(_QUOTA):
        return False
    return is_qualified_name(_QUOTA + name)


@lru_cache(maxsize=1 << 13)
def is_scalar_resource_name(name: str) -> bool:
    """Tell whether the scheduler counts the resource beside cpu, memory, ephemeral-storage and pods."""
    return (
        is_extended_resource_name(name)
        or is_huge_page_resource(name)
        or is_prefixed_native_resource(name)
        or is_attachable_volume_resource(name)
    )


def is_device_resource_name(name: str) -> bool:
    """Tell whether dynamic resource allocation may serve the resource."""
    return is_extended_resource_name(name) or name.startswith(_DEVICE_CLASS)


def is_pod_level_resource(name: str) -> bool:
    """Tell whether a pod may ask for the resource as a whole, beside its containers."""
    return name in {"cpu", "memory"} or is_huge_page_resource(name)
