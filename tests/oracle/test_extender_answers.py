"""What random answers of extenders mean, beside kube-scheduler's own reading of them.

POLICYSCHED_SEED repeats a run, POLICYSCHED_CASES sets its length. Whole nodes that were not asked about are left out
here: kube-scheduler goes on with them, and they are refused (docs/inside/differences.md).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from policysched.extenders import wire
from policysched.framework.extender import ExtenderError

from .seed import seed

if TYPE_CHECKING:
    from .oracle import Oracle

SEED = seed()
CASES = int(os.environ.get("POLICYSCHED_CASES") or 600)
NODES = ("n1", "n2", "n3")
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


DRAWN = {"filter": draw_filtered, "prioritize": draw_scores, "bind": draw_bound}


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
        wire.read_binding(answer)
    except ExtenderError:
        return {"error": True}
    return {}


def theirs(oracle: Oracle, verb: str, answer: bytes, *, by_name: bool) -> dict[str, Any]:
    found = oracle.extended(verb, answer, NODES, by_name=by_name)
    if found["error"]:
        return {"error": True}
    if verb == "filter":
        left, failed, unresolvable = (found[name] or {} for name in ("left", "failed", "unresolvable"))
        return {"left": set(left), "failed": failed, "unresolvable": unresolvable}
    if verb == "bind":
        return {}
    scores: dict[str, int] = {}
    for one in found["scores"] or ():
        scores[one["host"]] = scores.get(one["host"], 0) + one["score"]
    return {"scores": of_nodes(scores)}


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
