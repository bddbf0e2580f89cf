"""Node templates: nodes that an autoscaler would add, completed as the kubelet completes a new node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from policysched.app.files.given import Objects, given_documents
from policysched.model.decode import ObjectError, decode_node
from policysched.model.defaults import fill_node
from policysched.model.objects import Node, NodeCondition
from policysched.reading.documents import Document, Object, metadata_of
from policysched.schedule.cycle.node_templates import MOST_TEMPLATES

HOSTNAME: Final = "kubernetes.io/hostname"
_READY: Final = NodeCondition(type="Ready", status="True")


def node_templates(given: Iterable[Object | Document]) -> tuple[Node, ...]:
    """Return node templates: new, ready nodes with the label of their host name.

    Raises:
        UsageError: an object is no Node or malformed, two have one name, or there are too many.
    """
    found: dict[str, Node] = {}
    for one in given:
        try:
            node = _template(one.object if isinstance(one, Document) else one, found)
        except ObjectError as error:
            raise one.refusal(error.field, error) if isinstance(one, Document) else error from error
        found[node.metadata.name] = node
    return tuple(found.values())


def given_node_templates(given: Objects) -> tuple[Node, ...]:
    """Return node templates that are given as objects, texts, or paths of files; see `node_templates`.

    Raises:
        UsageError: a file cannot be read, or as for `node_templates`.
    """
    return node_templates(given_documents(given, "node_templates", "Node"))


def _template(raw: Object, others: Mapping[str, Node]) -> Node:
    if raw.get("kind", "Node") != "Node":
        raise ObjectError(str(raw["kind"]), str(metadata_of(raw).get("name")), "expected a Node", "kind")
    node = decode_node(fill_node(raw))
    name, status = node.metadata.name, node.status
    problem = "the node template has no name" if not name else "two node templates have this name"
    if not name or name in others:
        raise ObjectError("Node", name, problem, "metadata.name")
    if len(others) == MOST_TEMPLATES:
        raise ObjectError("Node", name, f"there are more than {MOST_TEMPLATES} node templates")
    metadata = replace(node.metadata, uid="", creation_timestamp=None, labels={HOSTNAME: name} | node.metadata.labels)
    return replace(node, metadata=metadata, status=replace(status, conditions=status.conditions or [_READY]))
