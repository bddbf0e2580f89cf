"""Explanations of warnings (W07..)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.messages.explanation import Explanation

WARNING_EXPLANATIONS: Final[Mapping[str, Explanation]] = {
    "W0701": Explanation(
        "Something that is read here may be missing, and nothing says what is to happen then.",
        "A node without the value is turned away by a filter and gets 0 from a score. Where that is meant, say so with "
        "`?? false` or `?? 0`; else `?? true`, another number, or a line `missing → n`.",
        'filters:\n- name: cores\n  require: number(node.labels["cores"]) > 10\n',
        'filters:\n- name: cores\n  require: (number(node.labels["cores"]) > 10) ?? false\n',
    ),
    "W0702": Explanation(
        "The cases have a line `missing → n`, and the score cannot be missing.",
        "The line is for nodes on which a guard is unknown, a number is missing or no guard is true. With `else`, and "
        "with guards and numbers that are always known, there are none.",
        'scores:\n- name: disk\n  cases:\n  - node.labels["disk"] == "ssd" → 80\n  - else → 20\n  - missing → 0\n',
        'scores:\n- name: disk\n  cases:\n  - node.labels["disk"] == "ssd" → 80\n  - else → 20\n',
    ),
    "W0703": Explanation(
        "A condition is true, false or unknown whatever the node or the pod is; or something is divided by zero, "
        "which has no value.",
        "A filter that is always true does nothing, one that is always false or unknown keeps every node out. Mostly a "
        "name stands in quotes and is therefore a text.",
        'filters:\n- name: one-node\n  require: \'"node.name" == "worker-1"\'\n',
        'filters:\n- name: one-node\n  require: node.name == "worker-1"\n',
    ),
    "W0704": Explanation(
        "A score is written as a percentage.",
        "`80%` is 0.8, and scores run from 0 to 100: 80% is next to nothing.",
        'scores:\n- name: disk\n  cases:\n  - node.labels["disk"] == "ssd" → 80%\n  - else → 20\n',
        'scores:\n- name: disk\n  cases:\n  - node.labels["disk"] == "ssd" → 80\n  - else → 20\n',
    ),
    "W0705": Explanation(
        "No node of the cluster has what is read here, or none has a value that it is compared with.",
        "A label that no node has is mostly misspelt, and is compared with in vain. Where nodes with it are still to "
        "come, nothing is wrong. Only `check --cluster` and a running scheduler can know.",
        'filters:\n- name: model\n  require: node.labels["gpu_model"] == "A100"\n',
        'filters:\n- name: model\n  require: node.labels["gpu-model"] == "A100"\n',
        "kind: Node\napiVersion: v1\nmetadata:\n  name: gpu-1\n  labels: {gpu-model: A100}\n",
    ),
    "W0706": Explanation(
        "A text of the policy holds a control character, one without width, or one that turns round what follows it.",
        "Nobody sees such a character, but it counts: the text equals no label that looks the same, and a reader may "
        "take it for another text. They come with copied texts, and some are put there on purpose. In what is printed, "
        "logged and written to objects they are written out.",
        'filters:\n- name: model\n  require: "node.labels[\\"gpu\\"] == \\"A100\\u200b\\""\n',
        'filters:\n- name: model\n  require: \'node.labels["gpu"] == "A100"\'\n',
    ),
    "W0707": Explanation(
        "A score gives every node the same number, or numbers less than one point apart.",
        "Scores run from 0 to 100 and are clipped there: a share between 0 and 1 is next to nothing beside the other "
        "plugins' scores, and a number that reads nothing of nodes prefers none of them. A share becomes a score with "
        "scale(x, 0%, 100%).",
        "scores:\n- name: free\n  value: node.free.cpu / node.allocatable.cpu\n",
        "scores:\n- name: free\n  value: scale(node.free.cpu / node.allocatable.cpu, 0%, 100%)\n",
    ),
    "W0708": Explanation(
        "A node's cores are compared with a number that no machine has.",
        "A plain number counts cores, as in Kubernetes' `cpu: 2`; `500m` is half a core.",
        "filters:\n- name: room\n  require: node.free.cpu > 500\n",
        "filters:\n- name: room\n  require: node.free.cpu > 500m\n",
    ),
    "W0709": Explanation(
        "A name is defined under `let`, and no text uses it.",
        "It is mostly left over from an edit, or misspelt where it was to be used.",
        "let:\n- name: room\n  value: node.free.cpu\nfilters:\n- name: ready\n  require: node.ready\n",
        "let:\n- name: room\n  value: node.free.cpu\nfilters:\n- name: ready\n  require: node.ready and room > 1\n",
    ),
    "W0710": Explanation(
        "The policy has neither filters nor scores, so it does nothing.",
        "`filters` keep pods off nodes, `scores` prefer nodes to others; a policy needs one of them.",
        "weight: 2\n",
        "weight: 2\nscores:\n- name: ready\n  cases:\n  - node.ready → 100\n",
    ),
}
