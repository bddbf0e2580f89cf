"""Decision records as answers: reduced to the requested nodes, and encoded in chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from policysched.schedule.cycle.ranking import ranked

Record = dict[str, Any]
_BY_NODE: Final = ("rejected", "scores", "total", "tiers")
_ENCODER: Final = msgspec.json.Encoder()


def shortened(record: Record, nodes: Collection[str], limit: int | None) -> Record:
    """Return a decision record with only some nodes; `leftOut` is the number of omitted nodes in each part.

    Args:
        record: The record.
        nodes: The nodes; empty for all.
        limit: Largest number of nodes in each part: best first, infeasible ones by name. None for all.
    """
    if not nodes and limit is None:
        return record
    if "members" in record:
        return record | {"members": [_shortened_member(one, nodes, limit) for one in record["members"]]}
    return _shortened_decision(record, nodes, limit)


def _shortened_member(member: Record, nodes: Collection[str], limit: int | None) -> Record:
    """Return a pod group's member with its own decision record shortened."""
    return member | {"decision": shortened(member["decision"], nodes, limit)} if "decision" in member else member


def _shortened_decision(record: Record, nodes: Collection[str], limit: int | None) -> Record:
    places = {name: place for place, name in enumerate(ranked(record))}
    left_out: dict[str, int] = {}

    def some(part: Mapping[str, Any]) -> dict[str, Any]:
        chosen: Iterable[str] = (name for name in part if not nodes or name in nodes)
        ordered = sorted(chosen, key=lambda name: (places.get(name, len(places)), name))
        return {name: part[name] for name in ordered[:limit]}

    made = dict(record)
    for key in _BY_NODE:
        if key in record:
            made[key] = some(record[key])
            left_out[key] = len(record[key]) - len(made[key])
    if "best" in record:
        made["best"] = [name for name in record["best"] if not nodes or name in nodes][:limit]
        left_out["best"] = len(record["best"]) - len(made["best"])
    if "rules" in record:
        made["rules"] = {name: _rules(parts, some) for name, parts in record["rules"].items()}
    if "preemption" in record:
        made["preemption"] = {
            key: some(part) if key in ("others", "protected") else part for key, part in record["preemption"].items()
        }
    left_out = {key: count for key, count in left_out.items() if count}
    return made | ({"leftOut": left_out} if left_out else {})


def _rules(parts: Mapping[str, Any], some: Any) -> Record:
    return {
        key: {rule: some(by_node) for rule, by_node in part.items()} if key in ("filters", "scores") else part
        for key, part in parts.items()
    }


def encoded(value: Any, depth: int = 2) -> bytes:
    """Encode a value as JSON, member by member, so that no long call blocks other threads."""
    return b"".join(_pieces(value, depth))


def _pieces(value: Any, depth: int) -> Iterator[bytes]:
    if not isinstance(value, dict) or not depth:
        yield _ENCODER.encode(value)
        return
    lead = b"{"
    for key, member in value.items():
        yield lead + _ENCODER.encode(key) + b":"
        yield from _pieces(member, depth - 1)
        lead = b","
    yield b"{}" if lead == b"{" else b"}"
