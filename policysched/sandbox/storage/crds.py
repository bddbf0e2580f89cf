"""CustomResourceDefinitions become served resources, and their conditions say so.

It reads the definition and changes the registry; the objects' schema is checked elsewhere. Definitions are
acted on in the same instant they are stored, so that a client never sees an established one that is not served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.resources import ApiResource

if TYPE_CHECKING:
    from policysched.sandbox.storage.backend import Backend
    from policysched.sandbox.storage.store import StoreEvent

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def serve_definitions(backend: Backend) -> None:
    """Follow the stored definitions."""

    def changed(event: StoreEvent) -> None:
        crd = event.entry.object
        name = crd["metadata"]["name"]
        if event.type == "DELETED":
            for entry in backend.store.values(name):
                backend.store.remove(name, *entry.key)
            backend.registry.replace_custom(name, [])
            return
        backend.registry.replace_custom(name, rows(crd))
        if not _established(crd):
            backend.store.write(DEFINITIONS, _accepted(crd, backend.timestamp()))

    backend.store.listen(DEFINITIONS, changed)


def rows(crd: Json) -> list[ApiResource]:
    """List the resources that a definition serves, one a version."""
    spec = crd["spec"]
    stored = next((each["name"] for each in spec["versions"] if each.get("storage")), "")
    return [_row(spec, version, stored) for version in spec["versions"] if version.get("served")]


def _row(spec: Json, version: Json, stored: str) -> ApiResource:
    names = spec["names"]
    return ApiResource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        subresources=frozenset(version.get("subresources") or ()),
        categories=tuple(names.get("categories") or ()),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        custom=version | {"storedVersion": stored},
    )


def _established(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _accepted(crd: Json, now: str) -> Json:
    spec = crd["spec"]
    names = dict(spec["names"])
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    said = (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    )
    conditions = [
        {"lastTransitionTime": now, "message": message, "reason": reason, "status": "True", "type": kind}
        for kind, reason, message in said
    ]
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    status = {"acceptedNames": names, "conditions": conditions, "storedVersions": stored}
    return crd | {"status": status}
