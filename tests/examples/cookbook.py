"""The cookbook: folders of examples with a policy, a cluster and tests, and the page that is made of them.

`python -m tests.examples.cookbook` writes docs/cookbook.md anew.
"""

from __future__ import annotations

from tests.examples.cases import CLUSTER, EXAMPLES, POLICY, ROOT, Case, cases
from tests.pages.listings import refreshed

PAGE = ROOT / "docs" / "cookbook.md"
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
    "keep-builds": "Keep long builds",
}
FIELDS = {
    "given": ("what the pod is, in words", ""),
    "pod": (
        "what matters of the pod: `name`, `namespace`, `labels`, `annotations`, `priority`, `requests`, `image`, "
        "`schedulerName`, `nodeSelector`; or `file`, a file of the folder with a pod or a workload, and its `name` "
        "where there are several",
        "a pod of the profile `policysched` that requests nothing",
    ),
    "now": ("the time that rules see, as `2026-01-05T23:00:00+01:00`", "the present"),
    "metrics": ("values by metric and node, see [metrics](metrics.md)", "none"),
    "expect.rejected": (
        "for each filter of the policy, the nodes that it does not keep, whatever else turns them away",
        "every filter keeps all nodes",
    ),
    "expect.scores": (
        "for each score, what it gives the nodes that are left, from 0 to 100, within 0.005; `null` where it gives "
        "nothing",
        "no score is asked",
    ),
    "expect.best": ("the nodes that the pod may go to; none where it has to wait", ""),
    "expect.reason": (
        "the message of the event about a pod that has to wait, without its end about preemption",
        "not looked at",
    ),
    "expect.protected": (
        "the pods of lower priority that the policy's condition on victims keeps where no node fits, as "
        "`namespace/name`",
        "none",
    ),
    "expect.nominated": ("the node on which pods of lower priority make room, and these pods", "nobody makes room"),
}
"""The fields of an entry of a tests.yaml: what each means, and what counts without it."""
INTRODUCTION = """\
# Cookbook

Policies to start from. Each stands in a folder of `examples/` with a small cluster and with tests, which say what the
policy does to which pod. The tests are run against the scheduler's own engine, and every policy is applied to an API
server by kubectl.

Try one without a cluster:

```console
$ policysched dry-run --cluster examples/pin-a-node/cluster.yaml --policy examples/pin-a-node/policy.yaml \\
    --pod examples/pin-a-node/pod.yaml
```

or put it to work: `kubectl apply -f examples/pin-a-node/policy.yaml`. What the expressions mean is in
[the language](language.md).

## Tests of a policy

A folder has three files: the policy in `policy.yaml`, the cluster in `cluster.yaml` (nodes, pods on them, and whatever
else a decision reads, as `kubectl get -o yaml` prints them), and `tests.yaml`, a list of what becomes of which pod:

```yaml file=tests.yaml
- given: a GPU pod that allows T4 only
  pod:
    annotations: {gpu-spec: T4}
    requests: {nvidia.com/gpu: 1}
  expect:
    rejected:
      allowed-model: [a100-1, a100-2, cpu-1, p100-1]
    scores:
      pack: {t4-1: 0, t4-2: 0}
    best: [t4-1, t4-2]
```

{fields}
`pytest tests/examples/test_cases.py -k FOLDER` tries a folder, and every rule of its policy has to speak in some test.
"""


def page() -> str:
    """Make docs/cookbook.md."""
    rows = "".join(
        f"| `{name}` | {meaning} | {without} |".replace("|  |", "| |") + "\n"
        for name, (meaning, without) in FIELDS.items()
    )
    fields = f"| field | meaning | without it |\n|---|---|---|\n{rows}"
    sections = "".join(_section(number, *one) for number, one in enumerate(RECIPES.items(), 1))
    return refreshed(INTRODUCTION.replace("{fields}", fields) + sections)


def _section(number: int, recipe: str, title: str) -> str:
    comment, policy = _parted((EXAMPLES / recipe / POLICY).read_text("utf-8"))
    rows = "".join(f"| {case.given} | {_outcome(case)} |\n" for case in cases(recipe))
    return (
        f"\n## {number}. {title}\n\n{comment}\n\n```yaml\n{policy}```\n\n"
        f"| on [this cluster](../examples/{recipe}/{CLUSTER}) | goes to |\n|---|---|\n{rows}"
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
