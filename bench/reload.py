"""Cost of an edit of a policy for the next pods: the first decision of each class with the new set.

5,000 nodes, 50,000 placed pods, 20 policies of 5 rules, pods of 10 cached classes. Edits: weight, rule, one policy
more, one policy less. For comparison, the same decisions without cached classes. Times are processor time. Prints a
table, or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from bench.rules import apply, loaded, pod, policies, policy
from policysched.app.configuration.profiles import default_profile
from policysched.model.policy import Policy, PolicyKey
from policysched.rules.policy_set.store import PolicyStore
from policysched.schedule.cycle.engine import Engine

KNOWN = 10
"""Number of pod classes whose results are cached before each edit."""


class Edited:
    """An engine with policies, one of which is edited repeatedly."""

    def __init__(self, nodes: int, pods: int, count: int) -> None:
        self._cluster, self._store, self._profile = loaded(nodes, pods), PolicyStore(), default_profile()
        self._policies = policies(count)
        for one in self._policies:
            active = apply(self._store, one)
        self._engine = Engine(self._cluster, active.join(self._profile), random.Random(7))
        self._number = 1

    def weight(self) -> None:
        """Change the weight of a policy."""
        self._edit(weight=self._number % 5 + 1)

    def rule(self) -> None:
        """Change a constant of a policy's first filter."""
        spec = self._policies[0].spec
        first = replace(spec.filters[0], require=f'node.name != "edited{self._number}"')
        self._edit(filters=(first, *spec.filters[1:]))

    def more(self) -> None:
        """Add a policy."""
        texts = ["node.free.cpu >= pod.requests.cpu", 'node.labels["pool"] != "p{n}"']
        self._use(policy("more", self._number, texts, [{"value": "scale(node.age, 0s, {n}h)"}]))

    def less(self) -> None:
        """Remove the added policy."""
        self._store.remove(PolicyKey("more"))
        self._engine.use(self._store.policy_set().join(self._profile))

    def nothing_known(self) -> None:
        """Clear all cached results of classes."""
        self._engine.classes.forget()

    def _edit(self, **fields: object) -> None:
        self._policies[0] = one = _next(replace(self._policies[0], spec=replace(self._policies[0].spec, **fields)))
        self._use(one)

    def _use(self, one: Policy) -> None:
        self._number += 1
        self._engine.use(apply(self._store, one).join(self._profile))

    def first_decisions(self, edit: Callable[[], None], times: int) -> dict[str, float]:
        """Make an edit several times; return its time and those of the first decisions. Units: milliseconds."""
        edits, firsts = [], []
        for _ in range(times):
            for index in range(KNOWN):
                self._decide(index)
            edits.append(_timed(edit))
            firsts += [_timed(partial(self._decide, index)) for index in range(KNOWN)]
        return {"edit": statistics.median(edits), "first": statistics.median(firsts), "worst": max(firsts)}

    def _decide(self, index: int) -> None:
        decision = self._engine.decide(pod(index, index))
        self._number += 1
        placed = pod(index, self._number * KNOWN + 1_000_000, decision.node)
        self._cluster.set_pod(placed)
        self._cluster.remove_pod(placed.metadata.uid)


def _next(one: Policy) -> Policy:
    return replace(one, metadata=replace(one.metadata, generation=one.metadata.generation + 1))


def _timed(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return (time.thread_time() - started) * 1e3


def show(rows: Sequence[dict[str, float | str]]) -> None:
    """Print the table."""
    table = Table(title="ms of processor time")
    for title in ("edit", "in force", "first of a class", "worst"):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(str(row["of"]), *(f"{row[name]:.2f}" for name in ("edit", "first", "worst")))
    Console().print(table)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000, help="number of nodes")
    parser.add_argument("--pods", type=int, default=50_000, help="number of pods")
    parser.add_argument("--policies", type=int, default=20, help="number of policies")
    parser.add_argument("--edits", type=int, default=10, help="number of edits of each kind")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    given = parser.parse_args()
    edited = Edited(given.nodes, given.pods, given.policies)
    gc.collect()
    gc.freeze()
    rows: list[dict[str, float | str]] = []
    for name, edit, times in (
        ("another weight", edited.weight, given.edits),
        ("another rule", edited.rule, given.edits),
        ("a policy more", edited.more, 1),
        ("a policy less", edited.less, 1),
        ("nothing known", edited.nothing_known, given.edits),
    ):
        rows.append({"of": name, **edited.first_decisions(edit, times)})
    print(msgspec.json.encode(rows).decode()) if given.json else show(rows)


if __name__ == "__main__":
    main()
