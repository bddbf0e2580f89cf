"""The cookbook: folders of examples with a policy, a cluster and tests, and the page that is made of them.

`python -m tests.examples.cookbook` writes docs/cookbook.md anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "cookbook.md"
Object = dict[str, Any]

RECIPES = {
    "pin-a-node": "Pin a node",
    "data-locality": "Data locality",
    "gpu-packing": "GPU models and bin-packing",
    "most-allocated": "Most allocated",
    "balanced": "Balanced",
    "spot-and-on-demand": "Spot and on-demand",
    "soft-zone-spread": "Soft zone spread",
    "hard-zone-spread": "Hard zone spread",
    "licence-seats": "Licence seats",
    "team-isolation": "Team isolation",
    "batch-at-night": "Batch at night",
    "05-load-aware": "Load-aware",
    "noisy-neighbours": "Noisy neighbours",
    "canary-share": "Canary share",
    "warm-up": "Warm-up",
    "image-locality": "Image locality",
    "head-room": "Head-room for critical pods",
    "big-memory-last": "Big memory last",
    "rack-quorum": "Rack quorum",
    "cheapest": "Cheapest by price label",
    "04-gpu-models": "GPU models allowed by an annotation",
}
INTRODUCTION = """\
# Cookbook

Policies to start from. Each stands in a folder of `examples/` with a small cluster and with tests, which say what the
policy does to which pod. The tests are run against the scheduler's own engine, and every policy is applied to an API
server by kubectl.

Try one without a cluster:

```sh
policysched dry-run --cluster examples/pin-a-node/cluster.yaml --policy examples/pin-a-node/policy.yaml --pod pod.yaml
```

or put it to work: `kubectl apply -f examples/pin-a-node/policy.yaml`. What the expressions mean is in
[the language](language.md).

A `tests.yaml` is a list of entries:

| field | meaning |
|---|---|
| `given` | what the pod is, in words |
| `pod` | what of it matters: `namespace`, `labels`, `annotations`, `priority`, `requests`, `image` |
| `now` | the time that rules see, the present without it |
| `metrics` | values by metric and node, see [metrics](metrics.md) |
| `expect.rejected` | the nodes that each filter turns away |
| `expect.scores` | what each score gives the nodes that are left |
| `expect.best` | the nodes that the pod may go to; none where it has to wait |
"""


@dataclass(frozen=True)
class Case:
    """One entry of a tests.yaml."""

    given: str
    pod: Object
    now: str | None
    metrics: Object | None
    rejected: Object
    scores: Object
    best: list[str]

    @property
    def holds_anywhere(self) -> bool:
        """Whether a server of its own time, metrics and priority classes decides the same."""
        return self.now is None and self.metrics is None and "priority" not in self.pod["spec"]


def documents(recipe: str, name: str) -> list[Object]:
    """Read a file of a folder."""
    return [one for one in yaml.safe_load_all((EXAMPLES / recipe / name).read_text("utf-8")) if one]


def cluster_file(recipe: str) -> str:
    """Name the file of the cluster."""
    return "cluster.yaml" if (EXAMPLES / recipe / "cluster.yaml").exists() else "cluster/nodes.yaml"


def cases(recipe: str) -> list[Case]:
    """Read the tests of a folder."""
    [entries] = documents(recipe, "tests.yaml")
    return [_case(one) for one in entries]


def whole_pod(part: Object) -> Object:
    """Make a pod of what of it matters."""
    requests = {name: str(amount) for name, amount in part.get("requests", {}).items()}
    extended = {name: amount for name, amount in requests.items() if "/" in name}
    container = {"name": "main", "image": part.get("image", "registry.example/app:1")}
    if requests:
        container["resources"] = {"requests": requests, "limits": extended}
    metadata = {"name": "new", "namespace": part.get("namespace", "default")}
    metadata |= {key: part[key] for key in ("labels", "annotations") if key in part}
    spec = {"schedulerName": "policysched", "containers": [container]}
    if "priority" in part:
        spec["priority"] = part["priority"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def page() -> str:
    """Make docs/cookbook.md."""
    return INTRODUCTION + "".join(_section(number, *one) for number, one in enumerate(RECIPES.items(), 1))


def _case(entry: Object) -> Case:
    expect = entry["expect"]
    now = entry.get("now")
    return Case(
        entry["given"],
        whole_pod(entry.get("pod", {})),
        None if now is None else str(now),
        entry.get("metrics"),
        expect.get("rejected", {}),
        expect.get("scores", {}),
        expect["best"],
    )


def _section(number: int, recipe: str, title: str) -> str:
    comment, policy = _parted((EXAMPLES / recipe / "policy.yaml").read_text("utf-8"))
    rows = "".join(f"| {case.given} | {_outcome(case)} |\n" for case in cases(recipe))
    return (
        f"\n## {number}. {title}\n\n{comment}\n\n```yaml\n{policy}```\n\n"
        f"| on [this cluster](../examples/{recipe}/{cluster_file(recipe)}) | goes to |\n|---|---|\n{rows}"
    )


def _parted(text: str) -> tuple[str, str]:
    """Part the comment that begins a policy from the rest."""
    lines = text.splitlines(keepends=True)
    count = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return " ".join(line[1:].strip() for line in lines[:count]), "".join(lines[count:])


def _outcome(case: Case) -> str:
    turned_away = "; ".join(f"`{rule}` turns away {', '.join(nodes)}" for rule, nodes in case.rejected.items())
    best = ", ".join(case.best) if case.best else "waits"
    return f"{best} ({turned_away})" if turned_away else best


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
