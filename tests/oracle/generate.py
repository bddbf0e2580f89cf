"""Random scheduling cases that bite, and the count of how often they do.

Knows nothing of how a case is answered. A case has up to three themes (what its nodes and its pod
are about): a case about everything at once is rejected by the first plugin, and the others never speak.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from . import configs, nodes, pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Case: TypeAlias = dict[str, Any]
Record: TypeAlias = dict[str, Any]

THEMES = ["resources", "affinity", "taints", "images", "ports", "features", "cordon", "odd", "name"]
SHARES = [8, 6, 5, 5, 4, 3, 3, 2, 1]


def singles(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    """Generate cases with one pod to schedule.

    Every case has a random source of its own, so that case 17 of a seed is the same whichever
    others are asked for.
    """
    for index in indices:
        yield single(Random(f"{seed}/single/{index}"), f"{seed}-{index}")


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


def biting(records: Iterable[Record]) -> dict[str, dict[str, int]]:
    """Count per plugin the records where it rejected something and where its scores differed."""
    rejected: Counter[str] = Counter()
    scored: Counter[str] = Counter()
    for record in records:
        rejected.update(_rejectors(record))
        scored.update(_discerning(record))
    plugins = sorted({*rejected, *scored})
    return {name: {"rejected": rejected[name], "scored": scored[name]} for name in plugins}


def _rejectors(record: Record) -> set[str]:
    found = {verdict["plugin"] for verdict in record.get("rejected", {}).values()}
    if "preFilter" in record:
        found.add(f"{record['preFilter']['plugin'] or 'no plugin'} (PreFilter)")
    return found


def _discerning(record: Record) -> set[str]:
    seen: dict[str, set[int]] = {}
    for scores in record.get("scores", {}).values():
        for plugin, score in scores.items():
            seen.setdefault(plugin, set()).add(score)
    return {plugin for plugin, scores in seen.items() if len(scores) > 1}


def table(counts: dict[str, dict[str, int]], total: int) -> str:
    """Lay out the counts of `biting` as text."""
    lines = [f"{'of ' + str(total) + ' decisions':32} {'rejected':>8} {'scored':>8}"]
    lines += [f"{name:32} {row['rejected']:8} {row['scored']:8}" for name, row in counts.items()]
    return "\n".join(lines)


def main() -> None:
    """Print generated cases, one JSON document a line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--sequences", action="store_true")
    options = parser.parse_args()
    generate = sequences if options.sequences else singles
    for case in generate(options.seed, range(options.count)):
        print(json.dumps(case))  # noqa: T201 - a command's output


if __name__ == "__main__":
    main()
