"""Discovery: what is served, in the aggregated form and in the plain one.

It turns registry rows into documents and knows nothing of the objects. Documents are made at each request:
they are asked for rarely, and a CRD must show as soon as it is served.
"""

from __future__ import annotations

from collections.abc import Callable

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import NO_SUCH, StatusError
from policysched.sandbox.objects.resources import ApiResource, Registry

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SUB_VERBS = {
    "binding": ("create",),
    "eviction": ("create",),
    "finalize": ("update",),
}
_SUB_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
}


def wants_aggregated(accept: str) -> bool:
    """Tell whether a client understands the aggregated form."""
    return "as=APIGroupDiscoveryList" in accept and "v=v2;" in f"{accept};".replace(",", ";")


def aggregated(registry: Registry, *, core: bool) -> Json:
    """Describe the core group, or all the others, in one document."""
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
            "versions": [_version(registry, group, version) for version in versions],
        }
        for group, versions in registry.groups().items()
        if core == (not group)
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _version(registry: Registry, group: str, version: str) -> Json:
    rows = [row for row in registry if (row.group, row.version) == (group, version)]
    return {"version": version, "resources": [_resource(row) for row in rows], "freshness": "Current"}


def _resource(row: ApiResource) -> Json:
    found: Json = {
        "resource": row.plural,
        "responseKind": {"group": row.group, "version": row.version, "kind": row.kind},
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": list(row.verbs),
    }
    if row.short_names:
        found["shortNames"] = list(row.short_names)
    if row.categories:
        found["categories"] = list(row.categories)
    subresources = [_subresource(row, name) for name in sorted(row.subresources)]
    return found | ({"subresources": subresources} if subresources else {})


def _subresource(row: ApiResource, name: str) -> Json:
    group, version, kind = _SUB_KINDS.get(name, (row.group, row.version, row.kind))
    verbs = _SUB_VERBS.get(name, ("get", "patch", "update"))
    response = {"group": group, "version": version, "kind": kind}
    return {"subresource": name, "responseKind": response, "verbs": list(verbs)}


def core_versions(_: Registry) -> Json:
    """Describe /api in the plain form."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group_list(registry: Registry) -> Json:
    """Describe /apis in the plain form."""
    groups = [_group(group, versions) for group, versions in registry.groups().items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _group(group: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def group_of(registry: Registry, group: str) -> Json:
    """Describe one group."""
    versions = registry.groups().get(group)
    if not versions or not group:
        raise StatusError(404, NO_SUCH, details={})
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group(group, versions)


def resource_list(registry: Registry, group: str, version: str) -> Json:
    """Describe the resources of one group and version in the plain form."""
    rows = [row for row in registry if (row.group, row.version) == (group, version)]
    if not rows:
        raise StatusError(404, NO_SUCH, details={})
    resources = [each for row in rows for each in _plain(row)]
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}


def _plain(row: ApiResource) -> list[Json]:
    found: Json = {"name": row.plural, "singularName": row.singular, "namespaced": row.namespaced}
    found |= {"kind": row.kind, "verbs": list(row.verbs)}
    if row.short_names:
        found["shortNames"] = list(row.short_names)
    if row.categories:
        found["categories"] = list(row.categories)
    subs = []
    for name in sorted(row.subresources):
        group, version, kind = _SUB_KINDS.get(name, (row.group, row.version, row.kind))
        sub: Json = {"name": f"{row.plural}/{name}", "singularName": "", "namespaced": row.namespaced}
        sub |= {"kind": kind, "verbs": list(_SUB_VERBS.get(name, ("get", "patch", "update")))}
        if (group, version) != (row.group, row.version):
            sub |= {"group": group, "version": version}
        subs.append(sub)
    return [found, *subs]


PLAIN: dict[tuple[str, ...], Callable[[Registry], Json]] = {("api",): core_versions, ("apis",): group_list}
