"""The rules of the functions that read the time: everything they are given is a constant.

So a zone that does not exist is found when a policy is compiled, and the moment at which such a value changes next is
known without evaluating anything else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from policysched.language.functions.arguments import constant_text, strings
from policysched.language.functions.zones import UTC, is_zone, zones_like
from policysched.language.ir.graph import Op, Typed, make
from policysched.language.ir.tree import Call
from policysched.language.ir.types import BOOL, NUMBER, STRING, Unit
from policysched.language.messages.suggestions import did_you_mean, shown

if TYPE_CHECKING:
    from policysched.language.checking.checker import Checker

_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")


def clock(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `clock(from, to, zone)`."""
    texts = _constants(checker, call)
    if texts is None:
        return None
    times = [_time(checker, call, index, texts[index]) for index in (0, 1)]
    zone = _zone(checker, call, texts, 2)
    if not all(times) or zone is None:
        return None
    if texts[0] == texts[1]:
        return checker.report("E0312", call.span, "clock")
    return make(Op.CLOCK, (), BOOL, (texts[0], texts[1], zone))


def hour(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `hour(zone)`."""
    texts = _constants(checker, call)
    zone = None if texts is None else _zone(checker, call, texts, 0)
    return None if zone is None else make(Op.HOUR, (), NUMBER, (zone,))


def weekday(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Check `weekday(zone)`."""
    texts = _constants(checker, call)
    zone = None if texts is None else _zone(checker, call, texts, 0)
    return None if zone is None else make(Op.WEEKDAY, (), STRING, (zone,))


def _constants(checker: Checker, call: Call) -> list[str] | None:
    nodes = strings(checker, call)
    if nodes is None:
        return None
    fit = [constant_text(checker, call, index, node) for index, node in enumerate(nodes)]
    return [str(node.data) for node in nodes] if all(fit) else None


def _time(checker: Checker, call: Call, index: int, text: str) -> bool:
    if _TIME.fullmatch(text):
        return True
    said = 'midnight is "00:00"' if text.startswith("24:") else 'times run from "00:00" to "23:59"'
    checker.report("E0312", call.arguments[index].span, "time", found=shown(text), help=said)
    return False


def _zone(checker: Checker, call: Call, texts: list[str], index: int) -> str | None:
    if index >= len(texts):
        return UTC
    zone = texts[index]
    if is_zone(zone):
        return zone
    meant = did_you_mean(zone, zones_like(zone)) or 'write its name, as in "Europe/Berlin"'
    checker.report("E0312", call.arguments[index].span, "zone", found=shown(zone), suggestion=meant)
    return None
