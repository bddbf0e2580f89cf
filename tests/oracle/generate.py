"""Random scheduling cases that bite.

Knows nothing of how a case is answered. A case has up to three themes (what its nodes and its pod
are about): a case about everything at once is rejected by the first plugin, and the others never speak.
Cases about pods that look at each other are made by `relations` and `stories`.
"""

from __future__ import annotations

import argparse
import json
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from . import configs, nodes, pods
from .relations import relation
from .stories import story

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Case: TypeAlias = dict[str, Any]

THEMES = ["resources", "affinity", "taints", "images", "ports", "features", "cordon", "odd", "name"]
SHARES = [8, 6, 5, 5, 4, 3, 3, 2, 1]
RELATED = 0.5
"""How many of all cases are about pods that look at each other."""
NOMINATED = 0.03
"""How many pods have been promised a node, which is tried before all others."""
NAMED = 0.02
"""How many pods name their node, whatever the case is about."""


def singles(seed: int, indices: Iterable[int], *, related: float = RELATED) -> Iterator[Case]:
    """Generate cases with one pod to schedule.

    Every case has a random source of its own, so that case 17 of a seed is the same whichever
    others are asked for.
    """
    for index in indices:
        rng = Random(f"{seed}/single/{index}")
        make = relation if rng.random() < related else single
        case = make(rng, f"{seed}-{index}")
        there = [thing["metadata"]["name"] for thing in case["objects"] if thing["kind"] == "Node"]
        if rng.random() < NOMINATED:
            case["pod"]["status"]["nominatedNodeName"] = rng.choice([*there, "absent"])
        if rng.random() < NAMED:
            case["pod"]["spec"]["nodeName"] = rng.choice([*there, "absent"])
        yield case


def sequences(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    """Generate cases whose pods are scheduled one after another, each seeing those before it."""
    for index in indices:
        rng = Random(f"{seed}/sequence/{index}")
        case = single(rng, f"{seed}-s{index}")
        themes = frozenset(case.pop("themes"))
        del case["pod"]
        names = [entry["metadata"]["name"] for entry in case["objects"] if entry["kind"] == "Node"]
        case["sequence"] = [pods.pending(rng, f"pod-{i}", names, themes - {"name"}) for i in range(rng.randint(4, 15))]
        case["themes"] = sorted(themes)
        yield case


def stories(seed: int, indices: Iterable[int], *, related: float = RELATED) -> Iterator[Case]:
    """Generate sequences of up to a few dozen pods in a small cluster where much happens between them."""
    for index in indices:
        rng = Random(f"{seed}/story/{index}")
        looks, length = rng.random() < related, rng.randint(10, 60)
        yield story(rng, f"{seed}-t{index}", length=length, most_nodes=25, busy=rng.choice([0.2, 0.6]), related=looks)


def marathons(seed: int, indices: Iterable[int], *, related: float = RELATED, length: int = 500) -> Iterator[Case]:
    """Generate long sequences; things happen between pods seldom, and every fourth cluster is large."""
    for index in indices:
        rng = Random(f"{seed}/marathon/{index}")
        looks, most = rng.random() < related, 60 if index % 4 else 250
        yield story(rng, f"{seed}-m{index}", length=length, most_nodes=most, busy=0.1, related=looks)


def single(rng: Random, name: str) -> Case:
    """Generate one case; `themes` tells what it is about and is no part of the question."""
    themes = frozenset(rng.choices(THEMES, SHARES, k=rng.choice([1, 2, 2, 3])))
    names = [f"node-{i}" for i in range(nodes.node_count(rng))]
    rng.shuffle(names)
    objects = [nodes.node(rng, node, themes) for node in names]
    objects += _residents(rng, names, themes)
    return {
        "id": name,
        "themes": sorted(themes),
        "objects": objects,
        "pod": pods.pending(rng, "pending", names, themes),
        "config": configs.variant(rng) if rng.random() < 0.15 else configs.base(),
    }


def _residents(rng: Random, names: list[str], themes: frozenset[str]) -> list[dict[str, Any]]:
    crowd = rng.choice([0.5, 2, 4]) if len(names) < 100 else 0.5
    homes = [rng.choice(names) for _ in range(int(len(names) * crowd))]
    homes += ["gone"] * rng.choice([0, 0, 0, 1])
    return [pods.placed(rng, f"placed-{i}", home, themes) for i, home in enumerate(homes)]


def main() -> None:
    """Print generated cases, one JSON document a line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    kinds: dict[str, Callable[[int, Iterable[int]], Iterator[Case]]]
    kinds = {"singles": singles, "sequences": sequences, "stories": stories, "marathons": marathons}
    parser.add_argument("--kind", choices=kinds, default="singles")
    options = parser.parse_args()
    for case in kinds[options.kind](options.seed, range(options.count)):
        print(json.dumps(case))  # noqa: T201 - a command's output


if __name__ == "__main__":
    main()
