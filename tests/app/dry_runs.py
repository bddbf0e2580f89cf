"""Objects as a user of Python gives them, and the record of one decision about them."""

from __future__ import annotations

from typing import Any

import policysched

Object = dict[str, Any]


def node(name: str = "n1", **fields: Any) -> Object:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    metadata = {"name": name, "labels": fields.pop("labels", {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status, **fields}


def pod(name: str = "web", cpu: Any = None, **spec: Any) -> Object:
    requests = {"requests": {"cpu": cpu}} if cpu else {}
    containers = [{"name": "c", "image": "i", "resources": requests}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def policy(name: str = "p", status: Object | None = None, **spec: Any) -> Object:
    metadata = {"name": name, "generation": 2}
    made = {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy", "metadata": metadata, "spec": spec}
    return made | ({"status": status} if status else {})


def requiring(condition: str) -> Object:
    return {"filters": [{"name": "r", "require": condition}]}


def record(objects: list[Object], of: Object, *policies: Object, **options: Any) -> Object:
    return policysched.dry_run(objects, of, policies, **options).to_dict()
