"""What is sent to extenders and read from them: kube-scheduler's JSON, names of fields in any case, as Go reads them.

Objects are sent as the API server wrote them. Of an answer only what is asked for is looked at, and everything in it
may be missing, null or of another type: then it is an ExtenderError that says what is wrong.

Source: k8s.io/kube-scheduler/extender/v1 (types.go), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, Final, TypeVar

import msgspec

from policysched.framework.extender import ExtenderError, FilterAnswer, NamedVictims

MAX_PRIORITY: Final = 10
"""The highest score that an extender is expected to give a node."""
LONGEST_MESSAGE: Final = 1024
"""How much is kept of why a node fails. Units: code points."""
INT64: Final = range(-(2**63), 2**63)
MORE_THAN_ASKED: Final = 4
"""How many times as many nodes, or victims, an answer may have as were asked about: each is looked at while all pods
wait."""
OTHER_VICTIMS: Final = 1024
"""How many victims an answer may have besides: an extender may name others than those that it was told of."""
MOST_FIELDS: Final = 256
"""How many fields an object may have."""


SizedT = TypeVar("SizedT", bound=Sized)
_NULL, _EMPTY = msgspec.Raw(b"null"), msgspec.Raw(b"{}")


class _Metadata(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Nodes(msgspec.Struct):
    items: list[_Named] | None = None


class _FilterResult(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """ExtenderFilterResult, its fields in the case in which nearly every extender writes them."""

    nodes: _Nodes | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str | None = None

    def left(self, *, by_name: bool) -> list[str] | None:
        """Return the nodes that are left, None where their names stand elsewhere than expected."""
        if by_name and self.node_names is not None:
            return self.node_names
        if self.nodes is None:
            return []
        if self.nodes.items is None:
            return None
        names = [one.metadata.name for one in self.nodes.items]
        return names if all(names) else None


_FILTER_RESULT: Final = msgspec.json.Decoder(_FilterResult)
_NAMED: Final = msgspec.json.Decoder(_Named)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)
_BESIDE_NODES: Final = frozenset(("nodenames", "failednodes", "failedandunresolvablenodes", "error"))
"""The fields of an answer that are read beside whole nodes."""


def filter_arguments(pod: bytes, nodes: Iterable[bytes]) -> bytes:
    """Write the question about nodes that the extender does not know.

    Args:
        pod: A pod as JSON.
        nodes: Nodes as JSON.
    """
    return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod, b",".join(nodes))


def named_arguments(pod: bytes, names: Sequence[str]) -> bytes:
    """Write the question about nodes that the extender knows by name."""
    return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (pod, msgspec.json.encode(names))


def preemption_arguments(pod: bytes, victims: Mapping[str, tuple[Sequence[bytes], int]]) -> bytes:
    """Write the candidates of preemption: for each node its victims as JSON, and how many budgets are violated."""
    given = [
        b'%b:{"Pods":[%b],"NumPDBViolations":%d}' % (msgspec.json.encode(node), b",".join(pods), violations)
        for node, (pods, violations) in victims.items()
    ]
    return b'{"Pod":%b,"NodeNameToVictims":{%b},"NodeNameToMetaVictims":null}' % (pod, b",".join(given))


def named_preemption_arguments(pod: bytes, victims: Mapping[str, NamedVictims]) -> bytes:
    """Write the same with the UIDs of the victims."""
    given = {
        node: {"Pods": [{"UID": uid} for uid in one.uids], "NumPDBViolations": one.pdb_violations}
        for node, one in victims.items()
    }
    return b'{"Pod":%b,"NodeNameToVictims":null,"NodeNameToMetaVictims":%b}' % (pod, msgspec.json.encode(given))


def binding_arguments(name: str, namespace: str, uid: str, node: str) -> bytes:
    """Write which pod is to be bound to which node."""
    return msgspec.json.encode({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node})


def read_filter(body: bytes, asked: Sequence[str], *, by_name: bool, extender: str) -> FilterAnswer:
    """Read which nodes are left.

    Args:
        body: The answer.
        asked: The nodes that it was asked about.
        by_name: Whether names are enough for the extender.
        extender: Its name.

    Raises:
        ExtenderError: the answer is an error, cannot be read, names a node that was not asked about, or far too many.
    """
    most = MORE_THAN_ASKED * len(asked)
    left, answer = _filter_result(body, most, by_name=by_name) or _odd_filter_result(body, most, by_name=by_name)
    if foreign := left.difference(asked):
        name = min(foreign)
        raise ExtenderError(
            f'extender "{extender}" claims a filtered node "{name}" which is not found in the input node list'
        )
    failed = _reasons(answer, "FailedNodes", most)
    return FilterAnswer(left, failed, _reasons(answer, "FailedAndUnresolvableNodes", most))


def _filter_result(body: bytes, most: int, *, by_name: bool) -> tuple[frozenset[str], Mapping[str, Any]] | None:
    """Read an answer of the usual form in one go: which nodes are left, and the other fields; None for any other."""
    try:
        given = _FILTER_RESULT.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    left = None if given.error else given.left(by_name=by_name)
    if left is None or len(left) > most:
        return None
    failed = {"FailedNodes": given.failed_nodes, "FailedAndUnresolvableNodes": given.failed_and_unresolvable_nodes}
    return frozenset(left), failed


def _odd_filter_result(body: bytes, most: int, *, by_name: bool) -> tuple[frozenset[str], Mapping[str, Any]]:
    """Read the same of an answer in any form, or say what is wrong with it."""
    given = _members(body, "the answer")
    answer = {name: _decoded(raw) for name, raw in given.items() if name.lower() in _BESIDE_NODES}
    check_error(answer)
    names, nodes = _field(answer, "NodeNames"), _field(given, "Nodes")
    if by_name and names is not None:
        left = [_text(name, "NodeNames") for name in _bounded(_list(names, "NodeNames"), "NodeNames", most)]
    else:
        left = _names_of(nodes, most)
    return frozenset(left), answer


def read_scores(body: bytes, asked: int) -> dict[str, int]:
    """Read the scores of nodes; of several for one node the sum counts.

    Args:
        body: The answer.
        asked: How many nodes it was asked about.

    Raises:
        ExtenderError: the answer cannot be read, or has far too many scores.
    """
    scores: dict[str, int] = {}
    for raw in _items(body, "the answer", MORE_THAN_ASKED * asked):
        given = _mapping(_decoded(raw), "a score")
        host, score = _text(_field(given, "Host") or "", "Host"), _int(_field(given, "Score"), "Score")
        scores[host] = scores.get(host, 0) + score
    return scores


def read_victims(body: bytes, asked: int, victims: int) -> dict[str, NamedVictims]:
    """Read the candidates that are left, by node.

    Args:
        body: The answer.
        asked: How many candidates it was asked about.
        victims: How many victims these have.

    Raises:
        ExtenderError: the answer cannot be read, or has far too many nodes or victims.
    """
    name = "NodeNameToMetaVictims"
    found, room = {}, MORE_THAN_ASKED * victims + OTHER_VICTIMS
    nodes = _present(_field(_members(body, "the answer"), name))
    for node, raw in _members(nodes, name, MORE_THAN_ASKED * asked).items():
        given = _members(_present(raw), "victims")
        pods = [_members(one, "a pod") for one in _items(_field(given, "Pods") or _NULL, "Pods", room)]
        room -= len(pods)
        uids = tuple(_text(_scalar(_field(one, "UID")) or "", "UID") for one in pods)
        violations = _int(_scalar(_field(given, "NumPDBViolations")), "NumPDBViolations")
        found[node] = NamedVictims(uids, violations)
    return found


def read_binding(body: bytes) -> None:
    """Read whether a pod was bound.

    Raises:
        ExtenderError: it was not.
    """
    check_error(_object(body))


def check_error(answer: Mapping[str, Any]) -> None:
    """Look whether an answer is an error.

    Raises:
        ExtenderError: it is one; it has the text of the answer.
    """
    if text := _field(answer, "Error"):
        raise ExtenderError(_text(text, "Error")[:LONGEST_MESSAGE])


def _decoded(body: bytes | msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ExtenderError(f"the answer is no JSON: {error}") from error


def _object(body: bytes) -> Mapping[str, Any]:
    return _mapping(_decoded(body), "the answer")


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ExtenderError(f"{what}: expected an object, got {_kind(value)}")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ExtenderError(f"{what}: expected a list, got {_kind(value)}")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ExtenderError(f"{what}: expected a text, got {_kind(value)}")
    return value


def _int(value: Any, what: str) -> int:
    """Read a whole number; absent is 0."""
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value not in INT64:
        raise ExtenderError(f"{what}: expected a whole number of 64 bits, got {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    return {type(None): "null", bool: "a boolean", dict: "an object", list: "a list", str: "a text"}.get(
        type(value), "a number"
    )


def _field(given: Mapping[str, Any], name: str) -> Any:
    """Return a field, its name in any case; None where it is missing."""
    if name in given:
        return given[name]
    lowered = name.lower()
    return next((value for key, value in given.items() if key.lower() == lowered), None)


def _present(raw: msgspec.Raw | None) -> msgspec.Raw:
    """Return an object that may be absent or null: then it has no fields."""
    return _EMPTY if raw is None or bytes(raw) == b"null" else raw


def _members(body: bytes | msgspec.Raw, what: str, most: int = MOST_FIELDS) -> Mapping[str, msgspec.Raw]:
    """Read the fields of an object without what is in them: whole nodes are large.

    Raises:
        ExtenderError: it is no object, or has too many.
    """
    try:
        members = _MEMBERS.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        members = {name: msgspec.Raw(msgspec.json.encode(one)) for name, one in _mapping(_decoded(body), what).items()}
    return _bounded(members, what, most)


def _items(body: bytes | msgspec.Raw, what: str, most: int) -> Sequence[msgspec.Raw]:
    """Read the items of a list without what is in them; null is none.

    Raises:
        ExtenderError: it is no list, or has too many.
    """
    try:
        items = _ITEMS.decode(body) or []
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        items = [msgspec.Raw(msgspec.json.encode(one)) for one in _list(_decoded(body), what)]
    return _bounded(items, what, most)


def _bounded(found: SizedT, what: str, most: int) -> SizedT:
    """Return what was found.

    Raises:
        ExtenderError: it is too much.
    """
    if len(found) > most:
        raise ExtenderError(f"{what}: {len(found)} are more than {most}")
    return found


def _scalar(raw: msgspec.Raw | None) -> Any:
    return None if raw is None else _decoded(raw)


def _names_of(nodes: msgspec.Raw | None, most: int) -> list[str]:
    """Read the names of the nodes of a list, and nothing else of them."""
    if nodes is None or bytes(nodes) == b"null":
        return []
    items = _field(_members(nodes, "Nodes"), "items")
    return [] if items is None else [_name_of(one) for one in _items(items, "Nodes.items", most)]


def _name_of(node: msgspec.Raw) -> str:
    """Read a node's name; its fields may be in any case, and hardly ever are."""
    try:
        if name := _NAMED.decode(node).metadata.name:
            return name
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    metadata = _mapping(_field(_mapping(_decoded(node), "a node"), "metadata") or {}, "metadata")
    return _text(_field(metadata, "name") or "", "metadata.name")


def _reasons(answer: Mapping[str, Any], name: str, most: int) -> dict[str, str]:
    given = _bounded(_mapping(_field(answer, name) or {}, name), name, most)
    return {node: _text(why, name)[:LONGEST_MESSAGE] for node, why in given.items()}
