"""What is sent to extenders and read from them: kube-scheduler's JSON, names of fields in any case, as Go reads them.

Objects are sent as the API server wrote them. Of an answer only what is asked for is looked at, and everything in it
may be missing, null or of another type: then it is an ExtenderError that says what is wrong.

Source: k8s.io/kube-scheduler/extender/v1 (types.go), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from policysched.framework.extender import ExtenderError, FilterAnswer, NamedVictims

MAX_PRIORITY: Final = 10
"""The highest score that an extender is expected to give a node."""
LONGEST_MESSAGE: Final = 1024
"""How much is kept of why a node fails. Units: code points."""
INT64: Final = range(-(2**63), 2**63)


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
        ExtenderError: the answer is an error, cannot be read, or names a node that was not asked about.
    """
    answer = _object(body)
    check_error(answer)
    names, nodes = _field(answer, "NodeNames"), _field(answer, "Nodes")
    if by_name and names is not None:
        left = [_text(name, "NodeNames") for name in _list(names, "NodeNames")]
    elif nodes is not None:
        items = _list(_field(_mapping(nodes, "Nodes"), "items") or [], "Nodes.items")
        left = [_name_of(item) for item in items]
    else:
        left = []
    if foreign := set(left).difference(asked):
        name = min(foreign)
        raise ExtenderError(
            f'extender "{extender}" claims a filtered node "{name}" which is not found in the input node list'
        )
    return FilterAnswer(
        frozenset(left), _reasons(answer, "FailedNodes"), _reasons(answer, "FailedAndUnresolvableNodes")
    )


def read_scores(body: bytes) -> dict[str, int]:
    """Read the scores of nodes; of several for one node the sum counts.

    Raises:
        ExtenderError: the answer cannot be read.
    """
    scores: dict[str, int] = {}
    for one in _list(_decoded(body) or [], "the answer"):
        given = _mapping(one, "a score")
        host, score = _text(_field(given, "Host") or "", "Host"), _int(_field(given, "Score"), "Score")
        scores[host] = scores.get(host, 0) + score
    return scores


def read_victims(body: bytes) -> dict[str, NamedVictims]:
    """Read the candidates that are left, by node.

    Raises:
        ExtenderError: the answer cannot be read.
    """
    found = {}
    for node, given in _mapping(_field(_object(body), "NodeNameToMetaVictims") or {}, "NodeNameToMetaVictims").items():
        victims = _mapping({} if given is None else given, "victims")
        pods = [_mapping(one, "a pod") for one in _list(_field(victims, "Pods") or [], "Pods")]
        uids = tuple(_text(_field(one, "UID") or "", "UID") for one in pods)
        found[node] = NamedVictims(uids, _int(_field(victims, "NumPDBViolations"), "NumPDBViolations"))
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


def _decoded(body: bytes) -> Any:
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


def _name_of(node: Any) -> str:
    metadata = _mapping(_field(_mapping(node, "a node"), "metadata") or {}, "metadata")
    return _text(_field(metadata, "name") or "", "metadata.name")


def _reasons(answer: Mapping[str, Any], name: str) -> dict[str, str]:
    given = _mapping(_field(answer, name) or {}, name)
    return {node: _text(why, name)[:LONGEST_MESSAGE] for node, why in given.items()}
