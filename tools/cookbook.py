"""The cookbook page: the policies of examples/ with their purpose and the results of their tests.

`python -m tools.cookbook` writes docs/write/cookbook.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from policysched.app.policy_tests.file_format import Expectation
from policysched.app.policy_tests.reading import read_tests

ROOT: Final = Path(__file__).parents[1]
EXAMPLES: Final = ROOT / "examples"
PAGE: Final = ROOT / "docs" / "write" / "cookbook.md"
RECIPES: Final = {
    "cookbook/pin-a-node": "Prefer one node",
    "cookbook/data-locality": "Data locality",
    "cookbook/gpu-packing": "GPU models and bin packing",
    "cookbook/most-allocated": "Most allocated",
    "cookbook/balanced": "Balanced",
    "cookbook/spot-and-on-demand": "Spot and on-demand",
    "cookbook/soft-zone-spread": "Soft zone spread",
    "cookbook/hard-zone-spread": "Hard zone spread",
    "cookbook/licence-seats": "Licence seats",
    "cookbook/team-isolation": "Team isolation",
    "cookbook/batch-at-night": "Batch at night",
    "tour/05-load-aware": "Load-aware",
    "cookbook/noisy-neighbours": "Noisy neighbours",
    "cookbook/canary-share": "Canary share",
    "cookbook/warm-up": "Warm-up of new nodes",
    "cookbook/image-locality": "Image locality",
    "cookbook/head-room": "Headroom for critical pods",
    "cookbook/big-memory-last": "Big memory last",
    "cookbook/rack-quorum": "Rack quorum",
    "cookbook/cheapest": "Cheapest by price label",
    "tour/04-gpu-models": "GPU models by annotation",
    "cookbook/keep-builds": "Keep long builds",
    "cookbook/zone-first": "One zone first",
}
"""Title of each folder below examples/, in the order of the page."""
INTRODUCTION: Final = """\
---
description: SchedulingPolicy examples to copy, for GPUs, zones, teams, spot nodes, load and cost, with tests.
---
# Cookbook

For authors of policies. Each recipe is a policy to copy and adapt, with the best nodes for some pods.

A recipe is a folder of [examples](../../examples) with `policy.yaml`, `cluster.yaml` and [`tests.yaml`](testing.md). To
try one without a cluster, run its tests or a [dry-run](dry-run.md):

```sh usage
policysched test examples/cookbook/pin-a-node
policysched dry-run --cluster examples/cookbook/pin-a-node/cluster.yaml \\
    --policy examples/cookbook/pin-a-node/policy.yaml --pod examples/cookbook/pin-a-node/pod.yaml
```

The [language](../reference/language.md) defines the expressions. [Weights](weights.md) explains `weight` and `tier`.
"""


def page() -> str:
    """Return the text of the cookbook page."""
    return INTRODUCTION + "".join(_section(folder, title) for folder, title in RECIPES.items())


def _section(folder: str, title: str) -> str:
    purpose, policy = _split((EXAMPLES / folder / "policy.yaml").read_text("utf-8"))
    rows = "".join(f"- {given}: {_result(expect)}\n" for given, expect in _tests(folder))
    cluster = f"[this cluster](../../examples/{folder}/cluster.yaml)"
    return f"\n## {title}\n\n{purpose}\n\n```yaml\n{policy}```\n\nBest nodes ({cluster}):\n\n{rows}"


def _tests(folder: str) -> list[tuple[str, Expectation]]:
    """Return description and expectation of the tests of one pod on the recipe's own cluster."""
    tests = read_tests(EXAMPLES / folder / "tests.yaml").written.tests
    return [(one.given, one.expect) for one in tests if one.expect is not None and one.cluster is None]


def _split(text: str) -> tuple[str, str]:
    """Return the leading comment of a policy as one line, and the rest of its text."""
    lines = text.splitlines(keepends=True)
    count = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return " ".join(line[1:].strip() for line in lines[:count]), "".join(lines[count:])


def _result(expect: Expectation) -> str:
    """Return a test's expected result as text: best nodes, victims, protected pods, nodes rejected by each rule."""
    best = ", ".join(f"**{node}**" for node in expect.best or ["none"])
    for node, victims in expect.nominated.items():
        best = f"**{node}** after evicting {', '.join(victims)}"
    protected = [f"protects {', '.join(expect.protected)}"] if expect.protected else []
    rejected = [f"`{rule}` rejects {', '.join(nodes)}" for rule, nodes in expect.rejected.items()]
    return "; ".join([best, *protected, *rejected])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
