"""What random answers of extenders mean, beside kube-scheduler's own reading of them.

POLICYSCHED_SEED repeats a run, POLICYSCHED_CASES sets its length. Whole nodes that were not asked about are left out
here: kube-scheduler goes on with them, and they are refused (docs/inside/differences.md). So are victims that are null:
kube-scheduler ends.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, cast

import pytest

from policysched.extenders import wire
from policysched.framework.extender import Extender, ExtenderError, NamedVictims, NodeVictims
from policysched.model.objects import Pod
from policysched.plugins.default_preemption.candidates import ask_extenders
from tests.build import node
from tests.plugins.preempting import low, wanted, world

from .seed import seed

if TYPE_CHECKING:
    from .oracle import Oracle

SEED = seed()
CASES = int(os.environ.get("POLICYSCHED_CASES") or 600)
NODES = ("n1", "n2", "n3")
UIDS = {"n1": ["default.a1"], "n2": ["default.b1", "default.b2"], "n3": ["default.c1"]}
"""The victims of preemption by node."""
NOTHING: dict[str, Any] = {}
ODD: tuple[Any, ...] = (None, None, 3, "text", True, [], NOTHING, [None], 1.5)


def draw_names(rng: Random) -> Any:
    names: list[Any] = rng.choices([*NODES, "n9", "", None, 7], [9, 9, 9, 1, 1, 1, 1], k=rng.randint(0, 3))
    return rng.choice(ODD) if rng.random() < 0.2 else names


def draw_nodes(rng: Random) -> Any:
    items = [{"metadata": {"name": name}} for name in rng.sample(NODES, rng.randint(0, 3))]
    return rng.choice([*ODD, {"items": None}]) if rng.random() < 0.2 else {"items": items}


def draw_reasons(rng: Random) -> Any:
    texts = ["no", "", None, "\ud83d", "\ude00 x", "\\ud83d", "\U0001f600", *[3] * (rng.random() < 0.1)]
    reasons = {name: rng.choice(texts) for name in rng.sample(NODES, 2)}
    return rng.choice(ODD) if rng.random() < 0.2 else reasons


def draw_filtered(rng: Random) -> Any:
    makers: dict[str, Callable[[Random], Any]] = {
        "NodeNames": draw_names,
        "Nodes": draw_nodes,
        "FailedNodes": draw_reasons,
        "FailedAndUnresolvableNodes": draw_reasons,
        "Error": lambda rng: rng.choice(["", "", None, "not today", 3]),
        "Other": lambda rng: rng.choice(ODD),
    }
    return {cased(rng, name): makers[name](rng) for name in rng.sample([*makers], rng.randint(0, 6))}


def draw_scores(rng: Random) -> Any:
    def one() -> Any:
        host = rng.choice([*NODES, "n9", "", None, *[4] * (rng.random() < 0.1)])
        score = rng.choice([0, 5, -3, 2**63 - 1, None, *[1.0, 2**63, "5"] * (rng.random() < 0.1)])
        fields = {"Host": host, "Score": score, "Other": [1]}
        return {cased(rng, name): fields[name] for name in rng.sample([*fields], rng.randint(0, 3))}

    return [one() if rng.random() < 0.9 else rng.choice(ODD[:3]) for _ in range(rng.randint(0, 3))]


def draw_bound(rng: Random) -> Any:
    return {cased(rng, "Error"): rng.choice(["", None, "no room", 3])} if rng.random() < 0.8 else {}


def draw_victims(rng: Random) -> Any:
    """Draw victims: mostly those of the node, fewer, those of another node, or nonsense in their place."""

    def one(node: str) -> Any:
        uids: list[Any] = rng.choice([UIDS[node], UIDS[node], UIDS[node][:1], [], UIDS["n3"], ["unknown"], [7], [None]])
        pods = [rng.choice([{cased(rng, "UID"): uid}, {"UID": uid, "Other": 1}]) for uid in uids]
        violations = rng.choice([0, 1, -1, 2**63 - 1, None, *[1.5, "2", 2**63] * (rng.random() < 0.1)])
        fields = {"Pods": rng.choice([*[pods] * 9, None]), "NumPDBViolations": violations, "Other": [1]}
        return {cased(rng, name): fields[name] for name in ("Pods", *rng.sample([*fields][1:], rng.randint(0, 2)))}

    nodes = rng.choices([*NODES, "n9"], [9, 9, 3, 1], k=rng.randint(0, 3))
    drawn = {node: one(node if node in UIDS else "n1") for node in nodes}
    fields = {"NodeNameToMetaVictims": rng.choice([*[drawn] * 9, None, 3]), "Other": rng.choice(ODD)}
    return {cased(rng, name): fields[name] for name in rng.sample([*fields], rng.randint(1, 2))}


DRAWN = {"filter": draw_filtered, "prioritize": draw_scores, "preempt": draw_victims, "bind": draw_bound}


def cased(rng: Random, name: str) -> str:
    return rng.choice([name, name, name, name.lower(), name.upper(), name[:1].lower() + name[1:]])


def draw(rng: Random, verb: str) -> bytes:
    """Draw an answer: of the usual form or odd ones, of several fields that are one but for their case too."""
    given = rng.choice(ODD) if rng.random() < 0.1 else DRAWN[verb](rng)
    text = json.dumps(given)
    ends = ("", "\n", " {}", "\nnull", "x", "]", text)
    return (rng.choice(["", " \n"]) + text + (rng.choice(ends) if rng.random() < 0.3 else "")).encode()


def ours(verb: str, answer: bytes, *, by_name: bool) -> dict[str, Any]:
    try:
        if verb == "filter":
            found = wire.read_filter(answer, NODES, by_name=by_name, extender="e")
            return {"left": set(found.nodes), "failed": found.failed, "unresolvable": found.unresolvable}
        if verb == "prioritize":
            return {"scores": of_nodes(wire.read_scores(answer, len(NODES)))}
        if verb == "preempt":
            return {"victims": left_candidates(answer)}
        wire.read_binding(answer)
    except ExtenderError:
        return {"error": True}
    return {}


def theirs(oracle: Oracle, verb: str, answer: bytes, *, by_name: bool) -> dict[str, Any]:
    found = oracle.extended(verb, answer, NODES, by_name=by_name, candidates=UIDS)
    if found["error"]:
        return {"error": True}
    if verb == "preempt":
        left_victims = {node: (one["pods"], one["violations"]) for node, one in (found["victims"] or {}).items()}
        # It goes on to refuse candidates without victims (preemption.go, callExtenders).
        return {"victims": left_victims} if all(pods for pods, _ in left_victims.values()) else {"error": True}
    if verb == "filter":
        left, failed, unresolvable = (found[name] or {} for name in ("left", "failed", "unresolvable"))
        return {"left": set(left), "failed": failed, "unresolvable": unresolvable}
    if verb == "bind":
        return {}
    scores: dict[str, int] = {}
    for one in found["scores"] or ():
        scores[one["host"]] = scores.get(one["host"], 0) + one["score"]
    return {"scores": of_nodes(scores)}


@dataclass
class Preempting:
    """An extender that gives one answer about candidates."""

    answer: bytes
    name: str = "e"
    ignorable: bool = False

    async def preempt(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> Mapping[str, NamedVictims]:
        assert pod.metadata.name == "wanted"
        return wire.read_victims(self.answer, len(candidates), sum(len(one.pods) for one in candidates.values()))


def left_candidates(answer: bytes) -> dict[str, tuple[list[str], int]]:
    """Ask an extender that gives one answer: return the victims by node, and how many budgets are violated."""
    pods = {node: tuple(low(uid.removeprefix("default."), node) for uid in uids) for node, uids in UIDS.items()}
    around = world(*map(node, NODES), *(one for victims in pods.values() for one in victims))
    candidates = {node: NodeVictims(victims, len(victims)) for node, victims in pods.items()}
    extender = cast("Extender", Preempting(answer))
    left = asyncio.run(ask_extenders(wanted(), [extender], candidates, around))
    return {node: ([one.metadata.uid for one in of.pods], of.pdb_violations) for node, of in left.items()}


def of_nodes(scores: dict[str, int]) -> dict[str, int]:
    """Leave out the scores of what is no node here."""
    return {name: score for name, score in scores.items() if name in NODES}


@pytest.mark.parametrize("verb", [*DRAWN])
def test_answers_mean_what_they_mean_to_kube_scheduler(oracle: Oracle, verb: str) -> None:
    rng = Random(f"{SEED} {verb}")
    errors = 0
    for number in range(CASES):
        answer, by_name = draw(rng, verb), rng.random() < 0.5
        mine = ours(verb, answer, by_name=by_name)
        assert mine == theirs(oracle, verb, answer, by_name=by_name), (SEED, number, answer, by_name)
        errors += "error" in mine
    assert CASES // 20 < errors < CASES * 3 // 4


def test_questions_are_those_of_kube_scheduler(oracle: Oracle) -> None:
    """What objects are sent as is the API server's; here they have names alone."""

    def named(name: str, **more: str) -> bytes:
        return json.dumps({"metadata": {"name": name, **more}}).encode()

    pod, nodes = named("p"), [named(one) for one in NODES]
    whole = {name: ([named(uid, uid=uid) for uid in uids], len(uids)) for name, uids in UIDS.items()}
    uids = {name: NamedVictims(tuple(uids), len(uids)) for name, uids in UIDS.items()}
    expected = {
        ("filter", False): wire.filter_arguments(pod, nodes),
        ("filter", True): wire.named_arguments(pod, NODES),
        ("prioritize", False): wire.filter_arguments(pod, nodes),
        ("prioritize", True): wire.named_arguments(pod, NODES),
        ("preempt", False): wire.preemption_arguments(pod, whole),
        ("preempt", True): wire.named_preemption_arguments(pod, uids),
        ("bind", False): wire.binding_arguments("p", "", "", "n1"),
        ("bind", True): wire.binding_arguments("p", "", "", "n1"),
    }
    for (verb, by_name), sent in expected.items():
        theirs = oracle.extended(verb, b"null", NODES, by_name=by_name, candidates=UIDS)["sent"]
        assert bare(json.loads(sent)) == bare(theirs), (verb, by_name)


def bare(value: Any) -> Any:
    """Leave out of objects what is empty in them, and what they are for."""
    if isinstance(value, list):
        return [bare(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {name: bare(one) for name, one in value.items() if name not in ("spec", "status", "creationTimestamp")}
    return {name: one for name, one in kept.items() if name != "metadata" or one}
