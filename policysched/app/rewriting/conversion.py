"""`convert`: writes the policies of a file in another API version and keeps all other bytes.

The versions have the same fields, so a conversion changes `apiVersion` only and loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from yaml.nodes import Node, ScalarNode

from policysched.app.checking.findings import is_policy
from policysched.app.rewriting.files import Rewritten, edited
from policysched.app.rewriting.scalars import DocumentNodes, Edit, rewrite
from policysched.errors import UsageError
from policysched.model.policy import API_GROUP, API_VERSIONS, KIND
from policysched.reading import positions
from policysched.reading.documents import Document, Object, read


def version_named(name: str) -> str:
    """Return an API version of policies by its name, with or without the group.

    Raises:
        UsageError: there is no such version.
    """
    version = name if "/" in name else f"{API_GROUP}/{name}"
    if version not in API_VERSIONS:
        raise UsageError(f'unknown API version "{name}"; the versions are {", ".join(API_VERSIONS)}')
    return version


def convert_source(text: str, file: str, version: str) -> Rewritten:
    """Write the policies of a text in an API version; objects of other kinds stay unchanged.

    Args:
        text: The text of a YAML or JSON file.
        file: Name of the file, for messages.
        version: The API version to write.

    Raises:
        UsageError: the text cannot be parsed, or the API version of a policy is unknown.
        PolicyschedError: the new text would have another meaning, for example because an alias shares the version.
    """
    documents = read(text, file)
    expected = converted(documents, version)
    edits = set(_edits([one for one in documents if is_policy(one.object)], version))
    if not edits:
        return Rewritten(text)
    return Rewritten(edited(text, edits, file, expected, lambda one: one.object), len(edits))


def converted(documents: Iterable[Document], version: str) -> list[Object]:
    """Return objects; the policies among these objects are converted to an API version.

    Raises:
        UsageError: the API version of a policy is unknown.
    """
    found = []
    for one in documents:
        if is_policy(one.object) and one.object["apiVersion"] not in API_VERSIONS:
            known = ", ".join(API_VERSIONS)
            raise one.refusal("apiVersion", f'unknown API version "{one.object["apiVersion"]}"; expected {known}')
        found.append({**one.object, "apiVersion": version} if is_policy(one.object) else one.object)
    return found


def _edits(policies: Iterable[Document], version: str) -> Iterator[Edit]:
    """Yield the edits that change the API version of policies; policies of one text are given one after another."""
    for _, group in groupby(policies, key=lambda one: id(one.source)):
        of_source = list(group)
        source = of_source[0].source
        around = DocumentNodes(source.root)
        for node in (*(one.exact("apiVersion") for one in of_source), _of_list(source.root)):
            if isinstance(node, ScalarNode) and node.value != version:
                yield rewrite(node, source, version, flow=around.in_flow(node))


def _of_list(root: Node) -> Node | None:
    """Return the YAML node of the apiVersion that items without an apiVersion inherit from a list of policies."""
    kind, found = positions.find(root, "kind")
    is_list = found and isinstance(kind, ScalarNode) and kind.value == f"{KIND}List"
    node, found = positions.find(root, "apiVersion")
    return node if is_list and found else None
