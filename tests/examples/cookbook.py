"""The cookbook: folders of examples with a policy, a cluster and tests, and the page that is made of them.

`python -m tests.examples.cookbook` writes docs/write/cookbook.md anew.
"""

from __future__ import annotations

from tests.examples.cases import CLUSTER, EXAMPLES, POLICY, ROOT, Case, cases
from tests.pages.listings import refreshed

PAGE = ROOT / "docs" / "write" / "cookbook.md"
RECIPES = {
    "cookbook/pin-a-node": "Pin a node",
    "cookbook/data-locality": "Data locality",
    "cookbook/gpu-packing": "GPU models and bin-packing",
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
    "cookbook/warm-up": "Warm-up",
    "cookbook/image-locality": "Image locality",
    "cookbook/head-room": "Head-room for critical pods",
    "cookbook/big-memory-last": "Big memory last",
    "cookbook/rack-quorum": "Rack quorum",
    "cookbook/cheapest": "Cheapest by price label",
    "tour/04-gpu-models": "GPU models allowed by an annotation",
    "cookbook/keep-builds": "Keep long builds",
    "cookbook/zone-first": "One zone first, whatever other scores say",
}
INTRODUCTION = """\
# Cookbook

Policies to start from. Each stands in a folder of `examples/` with a small cluster and with tests, which say what the
policy does to which pod. The tests are run against the scheduler's own engine, and every policy is applied to an API
server by kubectl.

Try one without a cluster:

```console
$ policysched dry-run --cluster examples/cookbook/pin-a-node/cluster.yaml \\
    --policy examples/cookbook/pin-a-node/policy.yaml --pod examples/cookbook/pin-a-node/pod.yaml
```

or put it to work: `kubectl apply -f examples/cookbook/pin-a-node/policy.yaml`. What the expressions mean is in
[the language](../reference/language.md).

## Tests of a policy

A folder has three files: the policy in `policy.yaml`, the cluster in `cluster.yaml` (nodes, pods on them, and whatever
else a decision reads, as `kubectl get -o yaml` prints them), and `tests.yaml`, a list of what becomes of which pod;
[tests of policies](testing.md) has all that they can say. `policysched test examples` runs them all:

```console
$ policysched test examples/cookbook/pin-a-node
```
"""


def page() -> str:
    """Make docs/write/cookbook.md."""
    sections = "".join(_section(number, *one) for number, one in enumerate(RECIPES.items(), 1))
    return refreshed(INTRODUCTION + sections)


def _section(number: int, recipe: str, title: str) -> str:
    comment, policy = _parted((EXAMPLES / recipe / POLICY).read_text("utf-8"))
    rows = "".join(f"| {case.given} | {_outcome(case)} |\n" for case in cases(recipe))
    return (
        f"\n## {number}. {title}\n\n{comment}\n\n```yaml\n{policy}```\n\n"
        f"| on [this cluster](../../examples/{recipe}/{CLUSTER}) | goes to |\n|---|---|\n{rows}"
    )


def _parted(text: str) -> tuple[str, str]:
    """Part the comment that begins a policy from the rest."""
    lines = text.splitlines(keepends=True)
    count = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return " ".join(line[1:].strip() for line in lines[:count]), "".join(lines[count:])


def _outcome(case: Case) -> str:
    turned_away = "; ".join(f"`{rule}` turns away {', '.join(nodes)}" for rule, nodes in case.expect.rejected.items())
    best = ", ".join(case.best) if case.best else "waits"
    for node, pods in case.expect.nominated.items():
        best = f"{node}, where {', '.join(pods)} {'goes' if len(pods) == 1 else 'go'}"
    if case.expect.protected:
        best += f" ({', '.join(case.expect.protected)} {'stays' if len(case.expect.protected) == 1 else 'stay'})"
    return f"{best} ({turned_away})" if turned_away else best


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
