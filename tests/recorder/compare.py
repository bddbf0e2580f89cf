"""What of a run has to be equal, and where two runs differ.

Calls of one pod are compared in their order; those at Filter, Score and NormalizeScore of one cycle as a set, since
kube-scheduler asks about nodes in an order that nobody promises, and nobody promises how often it asks the same about a
node with pods nominated to it, or which other nodes have been filtered in the same state before. Of all pods the order
of their cycles is compared.
Where a plugin fails at such a point kube-scheduler leaves out what it has not asked yet: of these points of the cycle
just that they were reached is compared. Of pods that are gone nothing is compared but calls: kube-scheduler writes
events about them, ours does not.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

Script = dict[str, Any]
Outcome = dict[str, Any]
NODE_POINTS: Final = {
    "filter": "filter", "addPod": "filter", "removePod": "filter", "score": "score", "normalizeScore": "normalize",
}  # fmt: skip
"""Points whose calls of one cycle have no order, by what they are gathered under."""
DEEDS: Final = ("allow", "reject", "activate")
STRAY: Final = re.compile(r"invalid score -?\d+")
"""What is said of a score out of range: of several nodes any one is told."""
MOMENT: Final = 0.0001
"""What passes until a victim that is deleted is gone for everybody. Units: seconds."""
DIGITS: Final = 5
"""How exactly times are compared. Units: decimal places of a second."""


def differences(script: Script, mine: Outcome, theirs: Outcome) -> list[str]:
    """Tell two runs apart, as a unified diff of what has to be equal; empty where they do not differ."""
    ours, kubes = lines_of(script, mine), lines_of(script, _without_needless_nominations(script, mine, theirs))
    if ours == kubes:
        return []
    return list(difflib.unified_diff(kubes, ours, "kube-scheduler", "policysched", n=4, lineterm=""))


def _without_needless_nominations(script: Script, mine: Outcome, theirs: Outcome) -> Outcome:
    """Leave out what only kube-scheduler writes: nominations of members of groups that it binds in the same moment.

    It writes them though the wait of the members at Permit is over.
    """
    members = {
        thing["metadata"]["name"]
        for step in script["steps"]
        if (thing := step.get("set", {})).get("kind") == "Pod" and "schedulingGroup" in thing["spec"]
    }
    bound, nominated = set(_nodes(theirs, "node")), set(_nodes(mine, "nominated"))
    needless = {one for one in _nodes(theirs, "nominated") if one[0] in members} & bound - nominated
    kept = (one for one in theirs["writes"] if next(_nodes({"writes": [one]}, "nominated"), None) not in needless)
    return {**theirs, "writes": list(kept)}


def _nodes(outcome: Outcome, field: str) -> Iterator[tuple[str, str, float]]:
    """Yield the pod, the node and the time of each write that names a node in a field."""
    return ((one["pod"], one[field], round(one["at"], DIGITS)) for one in outcome["writes"] if one.get(field))


def lines_of(script: Script, outcome: Outcome) -> list[str]:
    """Write out what has to be equal of a run."""
    failing = set(_failing(script))
    by_pod: dict[str, list[Any]] = defaultdict(list)
    gates = set(_gates(script))
    for call in outcome["calls"]:
        if call["point"] not in DEEDS and (call["point"] != "preEnqueue" or (call["plugin"], call["pod"]) in gates):
            by_pod[call["pod"]].append(call)
    lines = ["order of cycles:", *_cycles(outcome["calls"])]
    lines += ["deeds:", *(_line(call) for call in outcome["calls"] if call["point"] in DEEDS)]
    for pod in sorted(by_pod):
        lines += [f"calls of {pod}:", *_calls(by_pod[pod], failing)]
    gone = {step["remove"]["name"]: step["at"] for step in script["steps"] if "remove" in step}
    there = {pod["pod"] for pod in outcome["pods"]}
    preempted = (one for one in outcome["events"] if one["reason"] == "Preempted" and one["pod"] not in there)
    gone |= {one["pod"]: one["at"] + MOMENT for one in preempted}
    for name in ("events", "writes"):
        told = (one for one in outcome[name] if one["at"] < gone.get(one.get("pod"), math.inf))
        lines += [f"{name}:", *sorted(_line(one) for one in told)]
    lines += ["pods:", *(_line(one) for one in outcome["pods"])]
    for name in ("groups", "claims"):
        lines += [f"{name}:", *(_line(one) for one in outcome.get(name, ()))]
    return lines


def _cycles(calls: Iterable[Any]) -> list[str]:
    found = ((call["pod"], call["cycle"]) for call in calls if call.get("cycle"))
    return [f"  {pod} {cycle}" for pod, cycle in dict.fromkeys(found)]


def _calls(calls: Iterable[Any], failing: set[tuple[str, int, str]]) -> Iterator[str]:
    for (group, cycle), some in groupby(calls, lambda call: (NODE_POINTS.get(call["point"], ""), call.get("cycle"))):
        if not group:
            yield from (_line(call) for call in some)
            continue
        gathered = list(some)
        if (gathered[0]["pod"], cycle, group) in failing:
            yield f"  {group} of cycle {cycle}, failing"
        else:
            yield from sorted({_line(_alone(call) if group == "filter" else call) for call in gathered})


def _alone(call: Any) -> Any:
    """Return a call about a node without the trace that Filter left for other nodes."""
    return {**call, "notes": " ".join(note for note in call.get("notes", "").split() if note != "filter")}


def _failing(script: Script) -> Iterator[tuple[str, int, str]]:
    """Name the points of cycles at which a plugin fails on some node."""
    for plugin in script["plugins"]:
        for point, group in NODE_POINTS.items():
            for pod, answers in plugin.get("answers", {}).get(point, {}).items():
                for cycle, answer in enumerate(answers, 1):
                    if _fails(answer):
                        yield pod, cycle, group


def _gates(script: Script) -> Iterator[tuple[str, str]]:
    """Name the plugins that object at PreEnqueue, which kube-scheduler asks in no order, and to which pods."""
    for plugin in script["plugins"]:
        for pod in plugin.get("answers", {}).get("preEnqueue", {}):
            yield plugin["name"], pod


def _fails(answer: Any) -> bool:
    codes = {answer.get("code", ""), *(one.get("code", "") for one in answer.get("byNode", {}).values())}
    return bool(codes & {"Error", "Wait", "Skip"})


def _line(thing: Any) -> str:
    kept = {key: value for key, value in thing.items() if value is not None and value not in ([], {}, "")}
    if "at" in kept:
        kept["at"] = round(float(kept["at"]), DIGITS)
    return STRAY.sub("invalid score N", "  " + json.dumps(kept, sort_keys=True, ensure_ascii=False))
