"""Messages of the extender protocol: kube-scheduler's JSON; field names are case-insensitive, as in Go.

Objects are sent as the API server wrote them. Only the expected fields of an answer are read. A missing or null value
is empty, also the whole answer, and text after the answer is ignored. A value of another type raises an ExtenderError
with the reason. `reading.bounded_json` decodes the answers.

Source: k8s.io/kube-scheduler/extender/v1 (types.go), v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import msgspec

from policysched.budget import Budget, BudgetExceededError
from policysched.framework.extender import ExtenderError, FilterAnswer, NamedVictims
from policysched.reading.bounded_json import (
    FEW,
    FIELDS_EACH,
    INT64,
    NULL,
    Key,
    UnusableAnswerError,
    are_few,
    bounded,
    bounded_by,
    counted,
    counting,
    decoded,
    field,
    first_value,
    int_of,
    members,
    objects,
    present,
    text_of,
    weight,
)
from policysched.reading.lenient_json import UNREADABLE

P = ParamSpec("P")
T = TypeVar("T")
MAX_PRIORITY: Final = 10
"""Highest score of a node in an extender's answer."""
LONGEST_MESSAGE: Final = 1024
"""Maximum length of the reason of a failed node; the rest is cut off. Units: code points."""
MORE_THAN_REQUESTED: Final = 4
"""Maximum number of nodes or victims in an answer, in multiples of the request's number; more are an error.

All pods wait while an answer is read.
"""
OTHER_VICTIMS: Final = 1024
"""Number of victims allowed beyond MORE_THAN_REQUESTED times the request's: an extender may choose others."""


class _Metadata(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Nodes(msgspec.Struct):
    items: list[_Named] | None = None


class _FilterResult(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """ExtenderFilterResult, the answer to a filter request, with kube-scheduler's case of field names."""

    nodes: _Nodes | None = None
    node_names: list[str | None] | None = None
    failed_nodes: dict[str, str | None] | None = None
    failed_and_unresolvable_nodes: dict[str, str | None] | None = None
    error: str | None = None


class _LongFilterResult(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """ExtenderFilterResult of a long answer, whose number of map keys is limited while it is decoded."""

    nodes: _Nodes | None = None
    node_names: msgspec.Raw = NULL
    failed_nodes: dict[Key, str | None] | None = None
    failed_and_unresolvable_nodes: dict[Key, str | None] | None = None
    error: str | None = None


class _Score(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """HostPriority, the score of a node in a prioritize answer, with kube-scheduler's case of field names."""

    host: str | None = None
    score: int | None = None


class _Pod(msgspec.Struct, rename="upper", forbid_unknown_fields=True):
    """MetaPod, a victim in a preempt answer, with kube-scheduler's case of field names."""

    uid: str = ""


class _Victims(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """MetaVictims, the victims on a node in a preempt answer, with kube-scheduler's case of field names."""

    pods: list[_Pod] | None = None
    violations: int = msgspec.field(default=0, name="NumPDBViolations")


class _PreemptionResult(msgspec.Struct, forbid_unknown_fields=True):
    """ExtenderPreemptionResult, the answer to a preempt request, with kube-scheduler's case of field names."""

    victims: dict[str, _Victims] = msgspec.field(name="NodeNameToMetaVictims")


def _counting_filter_result(nodes: Budget) -> Any:
    """Return a struct type that decodes an ExtenderFilterResult and fails at more nodes than the budget allows."""
    items: Any = list[counting(_Named, nodes)] | None  # type: ignore[misc]
    struct: Any = msgspec.defstruct("Nodes", [("items", items, None)])
    return msgspec.defstruct("FilterResult", [("nodes", struct | None, None)], bases=(_LongFilterResult,))


def _counting_preemption_result(pods: Budget) -> Any:
    """Return a struct type that decodes an ExtenderPreemptionResult and fails at more pods than the budget allows."""
    items: Any = list[counting(_Pod, pods)] | None  # type: ignore[misc]
    victims: Any = msgspec.defstruct("Victims", [("pods", items, None)], bases=(_Victims,))
    return msgspec.defstruct(
        "PreemptionResult",
        [("victims", dict[Key, victims], msgspec.field(name="NodeNameToMetaVictims"))],
        forbid_unknown_fields=True,
    )


_PREEMPTION_RESULT: Final = msgspec.json.Decoder(_PreemptionResult)
_FILTER_RESULT: Final = msgspec.json.Decoder(_FilterResult)
_SCORES: Final = msgspec.json.Decoder(list[_Score | None] | None)
_NAMED: Final = msgspec.json.Decoder(list[_Named])
_TEXTS: Final = msgspec.json.Decoder(dict[str, str | None])
_LIST: Final = msgspec.json.Decoder(list[str | None] | None)
_FIELDS: Final = frozenset(("nodes", "nodenames", "failednodes", "failedandunresolvablenodes", "error"))
"""The field names of ExtenderFilterResult in lower case."""


def _raises_extender_errors(read: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to raise `ExtenderError` in place of `UnusableAnswerError`."""

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except UnusableAnswerError as error:
            raise ExtenderError(str(error)) from error

    return reading


def filter_arguments(pod: bytes, nodes: Iterable[bytes]) -> bytes:
    """Encode a filter or prioritize request with whole nodes, for an extender without a node cache.

    Args:
        pod: JSON of the pod.
        nodes: JSON of the nodes.
    """
    return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod, b",".join(nodes))


def named_arguments(pod: bytes, names: Sequence[str]) -> bytes:
    """Encode a filter or prioritize request with node names, for an extender with a node cache."""
    return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (pod, msgspec.json.encode(names))


def preemption_arguments(pod: bytes, victims: Mapping[str, tuple[Sequence[bytes], int]]) -> bytes:
    """Encode a preempt request with, for each candidate node, its victims as whole pods and its PDB violations."""
    given = [
        b'%b:{"Pods":[%b],"NumPDBViolations":%d}' % (msgspec.json.encode(node), b",".join(pods), violations)
        for node, (pods, violations) in victims.items()
    ]
    return b'{"Pod":%b,"NodeNameToVictims":{%b},"NodeNameToMetaVictims":null}' % (pod, b",".join(given))


def named_preemption_arguments(pod: bytes, victims: Mapping[str, NamedVictims]) -> bytes:
    """Encode a preempt request with, for each candidate node, the UIDs of its victims."""
    given = {
        node: {"Pods": [{"UID": uid} for uid in one.uids], "NumPDBViolations": one.pdb_violations}
        for node, one in victims.items()
    }
    return b'{"Pod":%b,"NodeNameToVictims":null,"NodeNameToMetaVictims":%b}' % (pod, msgspec.json.encode(given))


def binding_arguments(name: str, namespace: str, uid: str, node: str) -> bytes:
    """Encode a bind request."""
    return msgspec.json.encode({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node})


@_raises_extender_errors
def read_filter(body: bytes, requested: Sequence[str], *, by_name: bool, extender: str) -> FilterAnswer:
    """Return the decoded answer to a filter request.

    Args:
        body: The answer.
        requested: Names of the nodes in the request.
        by_name: Whether the extender has a node cache.
        extender: Name of the extender.

    Raises:
        ExtenderError: the answer is an error, is invalid, contains a node that was not in the request, or too many
            nodes.
    """
    most = MORE_THAN_REQUESTED * len(requested)
    left, failed, unresolvable = _filter_result(body, most, by_name=by_name) or _any_case_filter_result(
        first_value(body), most, by_name=by_name
    )
    if foreign := left.difference(requested):
        name = min(foreign)
        raise ExtenderError(
            f'extender "{extender}" claims a filtered node "{name[:LONGEST_MESSAGE]}" which is not found in the input '
            "node list"
        )
    return FilterAnswer(left, _cut(failed, "FailedNodes", most), _cut(unresolvable, "FailedAndUnresolvableNodes", most))


_Reasons: TypeAlias = Mapping[str, str | None] | Mapping[Key, str | None] | None
_Filtered: TypeAlias = tuple[frozenset[str], _Reasons, _Reasons]
"""A decoded filter answer: the remaining nodes, and the reasons of failed and of unresolvable nodes."""


def _filter_result(body: bytes, most: int, *, by_name: bool) -> _Filtered | None:
    """Decode a filter answer in one pass; None if its field names have another case than kube-scheduler's."""
    given: _FilterResult | _LongFilterResult
    try:
        if weight(body) <= FEW // 2:
            given = _FILTER_RESULT.decode(body)
        else:
            given = counted(body, _counting_filter_result(Budget(most)), Budget(2 * most))
    except (BudgetExceededError, *UNREADABLE):
        return None
    left = None if given.error else _left(given, most, by_name=by_name)
    if left is None or len(left) > most:
        return None
    return frozenset(left), given.failed_nodes, given.failed_and_unresolvable_nodes


def _left(given: _FilterResult | _LongFilterResult, most: int, *, by_name: bool) -> Sequence[str] | None:
    """Return the names of the nodes that a filter answer keeps; None if a needed field is missing."""
    if isinstance(given, _LongFilterResult):
        names = _node_names(given.node_names, most)
    else:
        names = None if given.node_names is None else [name or "" for name in given.node_names]
    if by_name and names is not None:
        return names
    if given.nodes is None:
        return []
    if given.nodes.items is None:
        return None
    names = [one.metadata.name for one in given.nodes.items]
    return names if all(names) else None


def _any_case_filter_result(body: bytes, most: int, *, by_name: bool) -> _Filtered:
    """Decode a filter answer with any case of field names, or raise an `ExtenderError` about the invalid part."""
    fields = members(body, "the answer").items()
    given = {name: raw for name, raw in fields if name.lower() in _FIELDS}
    check_error(given)
    names, whole = _node_names(field(given, "NodeNames"), most), _names_of(field(given, "Nodes"), most)
    left = names if by_name and names is not None else whole
    failed, unresolvable = (
        _reasons(field(given, name), name, most) for name in ("FailedNodes", "FailedAndUnresolvableNodes")
    )
    return frozenset(left), failed, unresolvable


@_raises_extender_errors
def read_scores(body: bytes, requested: int) -> dict[str, int]:
    """Return the decoded answer to a prioritize request: scores by node; several scores of a node are added.

    Args:
        body: The answer.
        requested: Number of nodes in the request.

    Raises:
        ExtenderError: the answer is invalid, or has too many scores.
    """
    scores: dict[str, int] = {}
    most = MORE_THAN_REQUESTED * requested
    found = _usual_scores(body, most)
    for host, score in _any_case_scores(first_value(body), most) if found is None else found:
        scores[host] = scores.get(host, 0) + score
    return scores


def _usual_scores(body: bytes, most: int) -> list[tuple[str, int]] | None:
    """Decode a prioritize answer in one pass; None if its field names have another case than kube-scheduler's."""
    given: Sequence[_Score | None] | None
    try:
        given = _SCORES.decode(body) if weight(body) <= FEW // 2 else _counted_items(body, _Score, most)
    except (BudgetExceededError, *UNREADABLE):
        return None
    found = [(one.host or "", one.score or 0) for one in given or () if one is not None]
    return found if len(found) <= most and all(score in INT64 for _, score in found) else None


def _any_case_scores(body: bytes, most: int) -> Iterator[tuple[str, int]]:
    """Decode a prioritize answer with any case of field names, or raise an `ExtenderError` about the invalid part."""
    for one in objects(body, "the answer", most):
        yield text_of(field(one, "Host"), "Host"), int_of(field(one, "Score"), "Score")


@_raises_extender_errors
def read_victims(body: bytes, requested: int, victims: int) -> dict[str, NamedVictims]:
    """Return the decoded answer to a preempt request: the remaining candidate nodes with their victims.

    Args:
        body: The answer.
        requested: Number of candidates in the request.
        victims: Number of victims in the request.

    Raises:
        ExtenderError: the answer is invalid, or has too many nodes or victims.
    """
    room = MORE_THAN_REQUESTED * victims + OTHER_VICTIMS
    found = _usual_victims(body, MORE_THAN_REQUESTED * requested, room)
    return _any_case_victims(first_value(body), MORE_THAN_REQUESTED * requested, room) if found is None else found


def _usual_victims(body: bytes, most: int, room: int) -> dict[str, NamedVictims] | None:
    """Decode a preempt answer in one pass; None if its field names have another case than kube-scheduler's."""
    given: _PreemptionResult
    try:
        if weight(body) <= FEW // 2:
            given = _PREEMPTION_RESULT.decode(body)
        else:
            given = counted(body, _counting_preemption_result(Budget(room)), Budget(most))
    except (BudgetExceededError, *UNREADABLE):
        return None
    victims = given.victims.items()
    found = {node: NamedVictims(tuple([pod.uid for pod in one.pods or ()]), one.violations) for node, one in victims}
    if len(found) > most or sum(len(one.uids) for one in found.values()) > room:
        return None
    return found if all(one.pdb_violations in INT64 for one in found.values()) else None


def _any_case_victims(body: bytes, most: int, room: int) -> dict[str, NamedVictims]:
    """Decode a preempt answer with any case of field names, or raise an `ExtenderError` about the invalid part."""
    name, found = "NodeNameToMetaVictims", {}
    fields = FIELDS_EACH * (most + room)
    for node, raw in members(present(field(members(body, "the answer"), name), b"{}"), name, most).items():
        given = members(present(raw, b"{}"), "victims")
        pods = objects(present(field(given, "Pods"), b"[]"), "Pods", room)
        room -= len(pods)
        fields -= len(given) + sum(map(len, pods))
        if fields < 0:
            raise ExtenderError(f"{name}: its objects have more than {FIELDS_EACH} fields on average")
        uids = tuple(text_of(field(one, "UID"), "UID") for one in pods)
        found[node] = NamedVictims(uids, int_of(field(given, "NumPDBViolations"), "NumPDBViolations"))
    return found


@_raises_extender_errors
def read_binding(body: bytes) -> None:
    """Raise an ExtenderError if the answer to a bind request is invalid or contains an error.

    Raises:
        ExtenderError: the pod was not bound.
    """
    check_error(members(first_value(body), "the answer"))


def check_error(answer: Mapping[str, msgspec.Raw]) -> None:
    """Raise an ExtenderError if an extender's answer contains an error.

    Raises:
        ExtenderError: the answer contains an error, whose text this exception has.
    """
    if text := text_of(field(answer, "Error"), "Error"):
        raise ExtenderError(text[:LONGEST_MESSAGE])


def _counted_items(body: bytes | msgspec.Raw, struct: type[msgspec.Struct], most: int) -> Any:
    """Decode a JSON list of at most `most` structs; more raise `BudgetExceededError`."""
    items = Budget(most)
    return counted(body, list[counting(struct, items)], items)  # type: ignore[misc]


def _node_names(raw: msgspec.Raw | None, most: int) -> list[str] | None:
    """Decode a list of at most `most` node names; return None if the list is absent."""
    if raw is None or raw == NULL:
        return None
    text = bytes(raw)
    if len(text) > FEW and (count := text.count(b",")) > most:
        raise ExtenderError(f"NodeNames: {count + 1} entries, more than the limit of {most}")
    return bounded([name or "" for name in decoded(_LIST, text, "NodeNames") or ()], "NodeNames", most)


def _names_of(nodes: msgspec.Raw | None, most: int) -> list[str]:
    """Decode only the names from a NodeList."""
    items = present(field(members(present(nodes, b"{}"), "Nodes"), "items"), b"[]")
    given: Sequence[_Named]
    try:
        given = _NAMED.decode(items) if are_few(items, FEW // 2) else _counted_items(items, _Named, most)
    except (BudgetExceededError, *UNREADABLE):
        given = ()
    names = [one.metadata.name for one in given]
    return bounded(names, "Nodes.items", most) if names and all(names) else _any_case_names(items, most)


def _any_case_names(items: bytes | msgspec.Raw, most: int) -> list[str]:
    """Decode the names of nodes with any case of field names, or raise an `ExtenderError` about the invalid part."""
    names, fields = [], FIELDS_EACH * most
    for node in objects(items, "Nodes.items", most):
        metadata = members(present(field(node, "metadata"), b"{}"), "metadata")
        fields -= len(metadata)
        if fields < 0:
            raise ExtenderError(f"Nodes.items: the metadata has more than {FIELDS_EACH} fields on average")
        names.append(text_of(field(metadata, "name"), "metadata.name"))
    return names


def _reasons(raw: msgspec.Raw | None, name: str, most: int) -> Mapping[str, str | None]:
    """Decode the map FailedNodes or FailedAndUnresolvableNodes: reasons by node name."""
    given = present(raw, b"{}")
    if are_few(given):
        return decoded(_TEXTS, given, name)
    found: Mapping[str, str | None] = bounded_by(Budget(most), dict[Key, str | None], given, name)
    return found


def _cut(reasons: _Reasons, name: str, most: int) -> Mapping[str, str]:
    if not reasons:
        return {}
    return {node: (why or "")[:LONGEST_MESSAGE] for node, why in bounded(reasons, name, most).items()}
