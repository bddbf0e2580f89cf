"""What an API server's audit log says of one user: which requests were refused, and which rights were used."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

Json = dict[str, Any]
POLICY: Final = "audit-policy.yaml"
LOG: Final = "audit.log"


def audit_flags(folder: Path, *users: str) -> tuple[str, ...]:
    """Write an audit policy for some users, and give the flags by which an API server keeps to it."""
    watched: Json = {"level": "Metadata", "users": list(users), "omitStages": ["RequestReceived"]}
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [watched, {"level": "None"}]}
    (folder / POLICY).write_text(yaml.safe_dump(policy))
    flags = (f"--audit-policy-file={folder / POLICY}", f"--audit-log-path={folder / LOG}")
    return (*flags, "--audit-log-mode=blocking")


@dataclass(frozen=True, order=True, slots=True)
class Call:
    """A request for a resource, as RBAC looks at it."""

    verb: str
    group: str
    resource: str
    """With the subresource, as `pods/binding`."""
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, order=True, slots=True)
class Right:
    """One verb on one resource that a role grants: everywhere without a namespace, on all objects without names."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    names: tuple[str, ...] = ()

    def allows(self, call: Call) -> bool:
        """Return whether it allows a request."""
        return (
            (self.verb, self.group, self.resource) == (call.verb, call.group, call.resource)
            and self.namespace in {"", call.namespace}
            and (not self.names or call.name in self.names)
        )


def rights(roles: Iterable[Json]) -> list[Right]:
    """Give what roles grant, verb by verb."""
    return [
        Right(verb, group, resource, role["metadata"].get("namespace", ""), tuple(rule.get("resourceNames", ())))
        for role in roles
        for rule in role["rules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    ]


def unused(granted: Iterable[Right], calls: Iterable[Call]) -> list[Right]:
    """Give the rights that no request needed."""
    made = set(calls)
    return [right for right in granted if not any(right.allows(call) for call in made)]


def events(log: Path) -> list[Json]:
    """Read what was logged of a user."""
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


def forbidden(logged: Iterable[Json]) -> list[str]:
    """Give the requests that authorization refused, with the reason."""
    return sorted(
        f"{event['verb']} {event['requestURI']}: {event.get('responseStatus', {}).get('message', '')}"
        for event in logged
        if event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    )


def calls(logged: Iterable[Json]) -> set[Call]:
    """Give the requests for resources that were allowed."""
    return set(_calls(logged))


def _calls(logged: Iterable[Json]) -> Iterator[Call]:
    for event in logged:
        ref = event.get("objectRef") or {}
        allowed = event.get("annotations", {}).get("authorization.k8s.io/decision") == "allow"
        if allowed and "resource" in ref:
            part = f"/{ref['subresource']}" if "subresource" in ref else ""
            place = (ref.get("namespace", ""), ref.get("name", ""))
            yield Call(event["verb"], ref.get("apiGroup", ""), ref["resource"] + part, *place)
