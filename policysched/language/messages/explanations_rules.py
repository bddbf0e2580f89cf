"""Explanations of mistakes about aggregates, rules and their cost (E04.., E05.., E06..)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.messages.explanation import Explanation

RULE_EXPLANATIONS: Final[Mapping[str, Explanation]] = {
    "E0401": Explanation(
        "`by` stands behind something that is no aggregate.",
        "`by` divides all nodes into domains, so it belongs to what is over all nodes: `sum`, `avg`, `min`, `max` and "
        "`count`. For one node there is nothing to divide.",
        "filters:\n- name: zone-room\n  require: (abs(node.free.cpu) by node.zone > 4) ?? false\n",
        "filters:\n- name: zone-room\n  require: (sum(node.free.cpu) by node.zone > 4) ?? false\n",
    ),
    "E0402": Explanation(
        "`node.pods.count`, `.any` or `.sum` stands inside of another one.",
        "That would compare every pod of a node with every other. Every construct is over nodes or over pods, once; "
        "this keeps decisions fast.",
        'filters:\n- name: databases\n  require: not node.pods.any(node.pods.count(peer.labels["app"] == "db") > 1)\n',
        'filters:\n- name: databases\n  require: node.pods.count(peer.labels["app"] == "db") <= 1\n',
    ),
    "E0403": Explanation(
        "An aggregate is over something that is the same for every node, or over a peer.",
        "`sum`, `avg`, `min`, `max` and `count` are over all nodes. What does not differ between them needs no "
        "aggregate; over the pods of a node are `node.pods.count`, `.any` and `.sum`.",
        "filters:\n- name: budget\n  require: sum(pod.requests.cpu) < 400\n",
        "filters:\n- name: budget\n  require: sum(node.requested.cpu) < 400\n",
    ),
    "E0404": Explanation(
        "What stands behind `by` is no string of the node.",
        "Nodes are in one domain if they have the same string there: a label, a well-known label such as "
        "`node.zone`, an annotation or the name.",
        "filters:\n- name: room\n  require: sum(node.free.cpu) by node.cordoned > 4\n",
        "filters:\n- name: room\n  require: (sum(node.free.cpu) by node.zone > 4) ?? false\n",
    ),
    "E0405": Explanation(
        "`appliesTo` or `when` reads the node, the cluster or an aggregate.",
        "They are asked once a pod, before any node is looked at, and decide whether a policy or a rule is about the "
        "pod at all. What is asked of nodes belongs into the rule itself.",
        'filters:\n- name: ssd-in-zone-a\n  when: node.zone == "zone-a"\n  require: node.labels["disk"] == "ssd"\n',
        'filters:\n- name: ssd-in-zone-a\n  require: node.zone != "zone-a" or node.labels["disk"] == "ssd"\n',
    ),
    "E0501": Explanation(
        "A score is no plain number, or a rule has both `cases` and a `value`, or neither; or what follows `missing →` "
        "is no constant.",
        "Scores of different rules are added up, so they are plain numbers from 0 to 100. An amount becomes one by "
        "dividing it by another, or by `scale`.",
        "scores:\n- name: memory\n  value: node.free.memory\n",
        "scores:\n- name: memory\n  value: scale(node.free.memory, 0, 256Gi)\n",
    ),
    "E0502": Explanation(
        "A constant score is below 0 or above 100, and the rule does not normalize.",
        "Scores run from 0, worst, to 100, best, and are cut to that. To count a rule more than others, give it a "
        "`weight`; with `normalize: Max` any numbers will do.",
        'scores:\n- name: pool\n  cases:\n  - node.labels["pool"] == "spot" → 200\n  - else → 50\n',
        'scores:\n- name: pool\n  normalize: Max\n  cases:\n  - node.labels["pool"] == "spot" → 200\n  - else → 50\n',
    ),
    "E0503": Explanation(
        "`else` is not the last case, or `else` or `missing` is there twice.",
        "The first true guard wins, and `else` is always true: nothing behind it is ever reached, but for `missing`, "
        "which may stand anywhere.",
        'scores:\n- name: disk\n  cases:\n  - else → 20\n  - node.labels["disk"] == "ssd" → 80\n',
        'scores:\n- name: disk\n  cases:\n  - node.labels["disk"] == "ssd" → 80\n  - else → 20\n',
    ),
    "E0504": Explanation(
        "A case is never reached: one above it has the same guard or is always true, or its own is always false.",
        "The first true guard wins. A case that cannot win is mostly one that was copied and not changed.",
        "scores:\n- name: disk\n  cases:\n"
        '  - node.labels["disk"] == "ssd" → 80\n  - node.labels["disk"] == "ssd" → 60\n  - else → 20\n',
        "scores:\n- name: disk\n  cases:\n"
        '  - node.labels["disk"] == "nvme" → 80\n  - node.labels["disk"] == "ssd" → 60\n  - else → 20\n',
    ),
    "E0505": Explanation(
        "A filter is written as a case, or a score as a condition.",
        "A filter asks yes or no, so it is a condition. A score says how good, so it is a number, or cases that give "
        "numbers.",
        'filters:\n- name: disk\n  require: node.labels["disk"] == "ssd" → 100\n',
        'filters:\n- name: disk\n  require: node.labels["disk"] == "ssd"\n',
    ),
    "E0506": Explanation(
        "`normalize` stands outside of a score, or inside of an aggregate.",
        "It is over the nodes that are left after filtering, and a filter comes before those are known. Filters "
        "compare with `max(...)` or `avg(...)` over all nodes.",
        "filters:\n- name: roomy\n  require: normalize(node.free.memory) > 50\n",
        "filters:\n- name: roomy\n  require: (node.free.memory > 50% * max(node.free.memory)) ?? true\n",
    ),
    "E0601": Explanation(
        "The policy has more than 64 rules, 64 metrics, 256 lines of `let` or 65,536 characters in all its "
        "expressions, or takes more than 256 operations once a node or 24 once a placed pod. Or the policies in force "
        "leave no room for it.",
        "What a policy costs is known when it is compiled, and bounded, so that no policy slows the scheduler down, "
        "nor do all of them together. Equal parts count once, in whatever rules they stand.",
        "filters:\n- name: no-rivals\n  require: "
        + " and ".join(f'node.pods.count(peer.labels["app"] == "db-{n}") < 1' for n in range(25))
        + "\n",
        'filters:\n- name: no-rivals\n  require: not node.pods.any(glob(peer.labels["app"], "db-*"))\n',
    ),
}
