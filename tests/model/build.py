"""Objects for the tests of the model, written as short as their subject allows."""

from __future__ import annotations

from typing import Any

from policysched.model.decode import decode_node, decode_pod
from policysched.model.objects import Node, Pod


def pod(spec: dict[str, Any] | None = None, **parts: Any) -> Pod:
    return decode_pod({"metadata": {"name": "p", "namespace": "default"}, "spec": spec or {}} | parts)


def node(**status: Any) -> Node:
    return decode_node({"metadata": {"name": "n"}, "status": status})


def container(name: str = "c", *, always: bool = False, **requests: str) -> dict[str, Any]:
    """A container with requests; underscores in names stand for slashes after the first, dashes else."""
    resources = {"requests": {key.replace("__", "/").replace("_", "-"): text for key, text in requests.items()}}
    return {"name": name, "resources": resources} | ({"restartPolicy": "Always"} if always else {})
