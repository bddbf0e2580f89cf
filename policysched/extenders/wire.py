"""What is sent to extenders and read from them: kube-scheduler's JSON, names of fields in any case, as Go reads them.

Objects are sent as the API server wrote them. Of an answer only what is asked for is looked at, and everything in it
may be missing, null or of another type: then it is an ExtenderError that says what is wrong. All pods wait while an
answer is read, and nothing reads JSON in parts: so values are decoded as what they have to be, which ends at the first
that is not, and what is too much is noticed while it is decoded (`_counted`), not when it is there.

Source: k8s.io/kube-scheduler/extender/v1 (types.go), v1.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

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
FIELDS_EACH: Final = 4
"""How many fields all objects of a list may have together, for each that it may have at most, where names of fields are
in an unusual case: of those that were asked about, each may have four times as many."""
FEW: Final = 200 << 10
"""What has no more commas and opening braces (`_weight`), and so no more fields and items, is decoded in 40 ms at most
without counting. Where items become structs, which take longer, half as many are few."""


T = TypeVar("T")
SizedT = TypeVar("SizedT", bound=Sized)
_NULL = msgspec.Raw(b"null")
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)


class _TooManyError(Exception):
    """Something has more entries than it may have; no ValueError, which msgspec would make one of its own."""


class _Key(str):
    """A key of an object that is counted as it is decoded."""

    __slots__ = ()


class _Counted(msgspec.Struct):
    """An item of a list that is counted as it is decoded: one list at a time, because one thread reads answers."""

    left: ClassVar[int] = 0
    """How many more there may be."""

    def __post_init__(self) -> None:
        """Count one more.

        Raises:
            _TooManyError: there are too many.
        """
        _Counted.left -= 1
        if _Counted.left < 0:
            raise _TooManyError


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


class _CountedNode(_Counted):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _CountedNodes(msgspec.Struct):
    items: list[_CountedNode] | None = None


class _LongFilterResult(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """The same, counted."""

    nodes: _CountedNodes | None = None
    node_names: msgspec.Raw = _NULL
    failed_nodes: dict[_Key, str] | None = None
    failed_and_unresolvable_nodes: dict[_Key, str] | None = None
    error: str | None = None


class _Score(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """HostPriority, its fields in the case in which nearly every extender writes them."""

    host: str | None = None
    score: int | None = None


class _CountedScore(_Counted, rename="pascal", forbid_unknown_fields=True):
    host: str | None = None
    score: int | None = None


class _Pod(msgspec.Struct, rename="upper", forbid_unknown_fields=True):
    """MetaPod."""

    uid: str = ""


class _CountedPod(_Counted, rename="upper", forbid_unknown_fields=True):
    uid: str = ""


class _Victims(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    """MetaVictims, its fields in the case in which nearly every extender writes them."""

    pods: list[_Pod] | None = None
    violations: int = msgspec.field(default=0, name="NumPDBViolations")


class _CountedVictims(msgspec.Struct, rename="pascal", forbid_unknown_fields=True):
    pods: list[_CountedPod] | None = None
    violations: int = msgspec.field(default=0, name="NumPDBViolations")


class _PreemptionResult(msgspec.Struct, forbid_unknown_fields=True):
    """ExtenderPreemptionResult."""

    victims: dict[str, _Victims] = msgspec.field(name="NodeNameToMetaVictims")


class _LongPreemptionResult(msgspec.Struct, forbid_unknown_fields=True):
    victims: dict[_Key, _CountedVictims] = msgspec.field(name="NodeNameToMetaVictims")


_PREEMPTION_RESULT: Final = msgspec.json.Decoder(_PreemptionResult)
_FILTER_RESULT: Final = msgspec.json.Decoder(_FilterResult)
_SCORES: Final = msgspec.json.Decoder(list[_Score] | None)
_NAMED: Final = msgspec.json.Decoder(list[_Named])
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXTS: Final = msgspec.json.Decoder(dict[str, str])
_LIST: Final = msgspec.json.Decoder(list[str])
_OBJECTS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_ANYTHING: Final = msgspec.json.Decoder(msgspec.Raw)
_STRING: Final = msgspec.json.Decoder(str)
_INTEGER: Final = msgspec.json.Decoder(int)
_MISMATCH: Final = re.compile(r"Expected `(\w++)[^`\n]*+`, got `(\w++)`")
_FIELDS: Final = frozenset(("nodes", "nodenames", "failednodes", "failedandunresolvablenodes", "error"))
"""The fields of ExtenderFilterResult, in lower case."""
_KINDS: Final = {
    "null": "null",
    "bool": "a boolean",
    "object": "an object",
    "array": "a list",
    "str": "a text",
    "int": "a whole number of 64 bits",
}


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
    left, failed, unresolvable = _filter_result(body, most, by_name=by_name) or _odd_filter_result(
        body, most, by_name=by_name
    )
    if foreign := left.difference(asked):
        name = min(foreign)
        raise ExtenderError(
            f'extender "{extender}" claims a filtered node "{name[:LONGEST_MESSAGE]}" which is not found in the input '
            "node list"
        )
    return FilterAnswer(left, _cut(failed, "FailedNodes", most), _cut(unresolvable, "FailedAndUnresolvableNodes", most))


_Reasons: TypeAlias = Mapping[str, str] | Mapping[_Key, str] | None
_Filtered: TypeAlias = tuple[frozenset[str], _Reasons, _Reasons]
"""Which nodes are left, and why others are not."""


def _filter_result(body: bytes, most: int, *, by_name: bool) -> _Filtered | None:
    """Read an answer of the usual form in one go; None for any other."""
    given: _FilterResult | _LongFilterResult
    try:
        if _weight(body) <= FEW // 2:
            given = _FILTER_RESULT.decode(body)
        else:
            given = _counted(body, _LongFilterResult, 2 * most, items=most)
    except (_TooManyError, *_UNREADABLE):
        return None
    left = None if given.error else _left(given, most, by_name=by_name)
    if left is None or len(left) > most:
        return None
    return frozenset(left), given.failed_nodes, given.failed_and_unresolvable_nodes


def _left(given: _FilterResult | _LongFilterResult, most: int, *, by_name: bool) -> Sequence[str] | None:
    """Return the nodes that are left, None where their names stand elsewhere than expected."""
    if by_name:
        names = given.node_names if isinstance(given, _FilterResult) else _node_names(given.node_names, most)
        if names is not None:
            return names
    if given.nodes is None:
        return []
    if given.nodes.items is None:
        return None
    names = [one.metadata.name for one in given.nodes.items]
    return names if all(names) else None


def _odd_filter_result(body: bytes, most: int, *, by_name: bool) -> _Filtered:
    """Read the same of an answer in any form, or say what is wrong with it."""
    members = _members(body, "the answer").items()
    given = {name: raw for name, raw in members if name.lower() in _FIELDS}
    check_error(given)
    names = _node_names(_field(given, "NodeNames"), most) if by_name else None
    left = _names_of(_field(given, "Nodes"), most) if names is None else names
    failed, unresolvable = (
        _reasons(_field(given, name), name, most) for name in ("FailedNodes", "FailedAndUnresolvableNodes")
    )
    return frozenset(left), failed, unresolvable


def read_scores(body: bytes, asked: int) -> dict[str, int]:
    """Read the scores of nodes; of several for one node the sum counts.

    Args:
        body: The answer.
        asked: How many nodes it was asked about.

    Raises:
        ExtenderError: the answer cannot be read, or has far too many scores.
    """
    scores: dict[str, int] = {}
    most = MORE_THAN_ASKED * asked
    found = _usual_scores(body, most)
    for host, score in _odd_scores(body, most) if found is None else found:
        scores[host] = scores.get(host, 0) + score
    return scores


def _usual_scores(body: bytes, most: int) -> list[tuple[str, int]] | None:
    """Read scores of the usual form in one go; None for any other."""
    given: Sequence[_Score | _CountedScore] | None
    try:
        given = _SCORES.decode(body) if _weight(body) <= FEW // 2 else _counted(body, list[_CountedScore], 0, most)
    except (_TooManyError, *_UNREADABLE):
        return None
    found = [(one.host or "", one.score or 0) for one in given or ()]
    return found if len(found) <= most and all(score in INT64 for _, score in found) else None


def _odd_scores(body: bytes, most: int) -> Iterator[tuple[str, int]]:
    """Read scores in any form, or say what is wrong with them."""
    for one in _objects(body, "the answer", most):
        yield _text(_field(one, "Host"), "Host"), _int(_field(one, "Score"), "Score")


def read_victims(body: bytes, asked: int, victims: int) -> dict[str, NamedVictims]:
    """Read the candidates that are left, by node.

    Args:
        body: The answer.
        asked: How many candidates it was asked about.
        victims: How many victims these have.

    Raises:
        ExtenderError: the answer cannot be read, or has far too many nodes or victims.
    """
    room = MORE_THAN_ASKED * victims + OTHER_VICTIMS
    found = _usual_victims(body, MORE_THAN_ASKED * asked, room)
    return _odd_victims(body, MORE_THAN_ASKED * asked, room) if found is None else found


def _usual_victims(body: bytes, most: int, room: int) -> dict[str, NamedVictims] | None:
    """Read candidates of the usual form in one go; None for any other."""
    given: _PreemptionResult | _LongPreemptionResult
    try:
        if _weight(body) <= FEW // 2:
            given = _PREEMPTION_RESULT.decode(body)
        else:
            given = _counted(body, _LongPreemptionResult, most, items=room)
    except (_TooManyError, *_UNREADABLE):
        return None
    victims = given.victims.items()
    found = {node: NamedVictims(tuple([pod.uid for pod in one.pods or ()]), one.violations) for node, one in victims}
    if len(found) > most or sum(len(one.uids) for one in found.values()) > room:
        return None
    return found if all(one.pdb_violations in INT64 for one in found.values()) else None


def _odd_victims(body: bytes, most: int, room: int) -> dict[str, NamedVictims]:
    """Read candidates in any form, or say what is wrong with them."""
    name, found = "NodeNameToMetaVictims", {}
    fields = FIELDS_EACH * (most + room)
    for node, raw in _members(_present(_field(_members(body, "the answer"), name), b"{}"), name, most).items():
        given = _members(_present(raw, b"{}"), "victims")
        pods = _objects(_present(_field(given, "Pods"), b"[]"), "Pods", room)
        room -= len(pods)
        fields -= len(given) + sum(map(len, pods))
        if fields < 0:
            raise ExtenderError(f"{name}: its objects have more than {FIELDS_EACH} fields each")
        uids = tuple(_text(_field(one, "UID"), "UID") for one in pods)
        found[node] = NamedVictims(uids, _int(_field(given, "NumPDBViolations"), "NumPDBViolations"))
    return found


def read_binding(body: bytes) -> None:
    """Read whether a pod was bound.

    Raises:
        ExtenderError: it was not.
    """
    check_error(_members(body, "the answer"))


def check_error(answer: Mapping[str, msgspec.Raw]) -> None:
    """Look whether an answer is an error.

    Raises:
        ExtenderError: it is one; it has the text of the answer.
    """
    if text := _text(_field(answer, "Error"), "Error"):
        raise ExtenderError(text[:LONGEST_MESSAGE])


def _counted(body: bytes | msgspec.Raw, kind: Any, keys: int, items: int = 0) -> Any:
    """Decode, and count what is counted on the way.

    Args:
        body: What is decoded.
        kind: What it is to be, with `_Key` and `_Counted` in it.
        keys: How many keys it may have.
        items: How many items of a list it may have.

    Raises:
        _TooManyError: there are more.
    """

    def take(kind: type[_Key], given: str) -> _Key:
        nonlocal keys
        keys -= 1
        if keys < 0:
            raise _TooManyError
        return kind(given)

    _Counted.left = items
    return msgspec.json.decode(body, type=kind, dec_hook=take)


def _weight(body: bytes) -> int:
    """Return a bound on how many fields and items there are, in a hundredth of the time that they would take."""
    return body.count(b",") + body.count(b"{")


def _are_few(body: bytes | msgspec.Raw, most: int = FEW) -> bool:
    return len(memoryview(body)) <= most or _weight(bytes(body)) <= most


def _decoded(decoder: msgspec.json.Decoder[T], text: bytes | msgspec.Raw, what: str) -> T:
    """Decode what has to be of one type.

    Raises:
        ExtenderError: it is of another one, or no JSON.
    """
    try:
        return decoder.decode(text)
    except _UNREADABLE as error:
        raise _unreadable(error, text, what) from error


def _bounded_by(most: int, kind: Any, text: bytes | msgspec.Raw, what: str, *, items: int = 0) -> Any:
    """Decode the same where it may be too much.

    Raises:
        ExtenderError: it is, or of another type, or no JSON.
    """
    try:
        return _counted(text, kind, most, items)
    except _TooManyError:
        raise ExtenderError(f"{what}: it has more than {most or items}") from None
    except _UNREADABLE as error:
        raise _unreadable(error, text, what) from error


def _unreadable(error: Exception, text: bytes | msgspec.Raw, what: str) -> ExtenderError:
    """Say what is wrong with what cannot be decoded: that it is no JSON, or else of which type it is."""
    found = _MISMATCH.match(str(error))
    try:
        _ANYTHING.decode(text)
    except _UNREADABLE as worse:
        error, found = worse, None
    if found is None:
        return ExtenderError(f"the answer is no JSON: {error}")
    got = "a number" if found[2] in ("int", "float") else _KINDS[found[2]]
    return ExtenderError(f"{what}: expected {_KINDS[found[1]]}, got {got}")


def _text(raw: msgspec.Raw | None, what: str) -> str:
    """Read a text; absent is empty."""
    return _decoded(_STRING, _present(raw, b'""'), what)


def _int(raw: msgspec.Raw | None, what: str) -> int:
    """Read a whole number; absent is 0."""
    number = _decoded(_INTEGER, _present(raw, b"0"), what)
    if number not in INT64:
        raise ExtenderError(f"{what}: expected a whole number of 64 bits, got a number")
    return number


def _field(given: Mapping[str, T], name: str) -> T | None:
    """Return a field, its name in any case; None where it is missing."""
    if name in given:
        return given[name]
    lowered = name.lower()
    return next((value for key, value in given.items() if key.lower() == lowered), None)


def _present(raw: msgspec.Raw | None, absent: bytes) -> bytes | msgspec.Raw:
    """Return a value that may be absent or null: then it is as another one says."""
    return absent if raw is None or raw == _NULL else raw


def _members(body: bytes | msgspec.Raw, what: str, most: int = MOST_FIELDS) -> Mapping[str, msgspec.Raw]:
    """Read the fields of an object without what is in them: whole nodes are large.

    Raises:
        ExtenderError: it is no object, or has too many.
    """
    if _are_few(body):
        return _bounded(_decoded(_MEMBERS, body, what), what, most)
    found: Mapping[str, msgspec.Raw] = _bounded_by(most, dict[_Key, msgspec.Raw], body, what)
    return found


def _objects(body: bytes | msgspec.Raw, what: str, most: int) -> Sequence[Mapping[str, msgspec.Raw]]:
    """Read the fields of the objects of a list without what is in them.

    Raises:
        ExtenderError: it is no list of objects, or has too many, or these have.
    """
    if _are_few(body):
        return _bounded(_decoded(_OBJECTS, body, what), what, most)
    _bounded_by(0, list[_Counted], body, what, items=most)
    kind = list[dict[_Key, msgspec.Raw]]
    found: list[Mapping[str, msgspec.Raw]] = _bounded_by(FIELDS_EACH * most, kind, body, f"{what}: their fields")
    return found


def _bounded(found: SizedT, what: str, most: int) -> SizedT:
    """Return what was found.

    Raises:
        ExtenderError: it is too much.
    """
    if len(found) > most:
        raise ExtenderError(f"{what}: {len(found)} are more than {most}")
    return found


def _node_names(raw: msgspec.Raw | None, most: int) -> list[str] | None:
    """Read names of nodes, which have no commas; None where there is no list of them."""
    if raw is None or raw == _NULL:
        return None
    text = bytes(raw)
    if len(text) > FEW and (count := text.count(b",")) > most:
        raise ExtenderError(f"NodeNames: {count + 1} are more than {most}")
    return _bounded(_decoded(_LIST, text, "NodeNames"), "NodeNames", most)


def _names_of(nodes: msgspec.Raw | None, most: int) -> list[str]:
    """Read the names of the nodes of a list, and nothing else of them."""
    items = _present(_field(_members(_present(nodes, b"{}"), "Nodes"), "items"), b"[]")
    given: Sequence[_Named | _CountedNode]
    try:
        given = _NAMED.decode(items) if _are_few(items, FEW // 2) else _counted(items, list[_CountedNode], 0, most)
    except (_TooManyError, *_UNREADABLE):
        given = ()
    names = [one.metadata.name for one in given]
    return _bounded(names, "Nodes.items", most) if names and all(names) else _odd_names(items, most)


def _odd_names(items: bytes | msgspec.Raw, most: int) -> list[str]:
    """Read the same where the names of fields may be in any case, or say what is wrong."""
    names, fields = [], FIELDS_EACH * most
    for node in _objects(items, "Nodes.items", most):
        metadata = _members(_present(_field(node, "metadata"), b"{}"), "metadata")
        fields -= len(metadata)
        if fields < 0:
            raise ExtenderError(f"Nodes.items: their metadata has more than {FIELDS_EACH} fields each")
        names.append(_text(_field(metadata, "name"), "metadata.name"))
    return names


def _reasons(raw: msgspec.Raw | None, name: str, most: int) -> Mapping[str, str]:
    """Read why nodes fail."""
    given = _present(raw, b"{}")
    if _are_few(given):
        return _decoded(_TEXTS, given, name)
    found: Mapping[str, str] = _bounded_by(most, dict[_Key, str], given, name)
    return found


def _cut(reasons: _Reasons, name: str, most: int) -> Mapping[str, str]:
    if not reasons:
        return {}
    return {node: why[:LONGEST_MESSAGE] for node, why in _bounded(reasons, name, most).items()}
