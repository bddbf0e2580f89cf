"""Explanations of mistakes about names (E02..)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.messages.explanation import Explanation

NAME_EXPLANATIONS: Final[Mapping[str, Explanation]] = {
    "E0201": Explanation(
        "Nothing has this name.",
        "An expression knows `node`, `pod`, `cluster`, `metrics`, the functions, and what `let` defines above it. A "
        "text of your own has to stand in double quotes.",
        'filters:\n- name: zone\n  require: nod.zone == "zone-a"\n',
        'filters:\n- name: zone\n  require: node.zone == "zone-a"\n',
    ),
    "E0202": Explanation(
        "The name has no such field, or is written in a way that it is not read in: without its key, with a key that "
        "it does not take, or as a value where it is a function.",
        "Amounts of a node are told apart: `node.allocatable` is what it has, `node.requested` what its pods request, "
        "`node.free` the difference. Labels and annotations have a key in brackets.",
        "filters:\n- name: memory\n  require: node.memory > 4Gi\n",
        "filters:\n- name: memory\n  require: node.free.memory > 4Gi\n",
    ),
    "E0203": Explanation(
        "`metrics.<name>` is read and no metric of this name is declared in the policy.",
        "A value from outside has a query, a unit and an age; they stand under `spec.metrics`, so that a policy says "
        "itself what it depends on.",
        "filters:\n- name: calm\n  require: (metrics.load < 80%) ?? true\n",
        "metrics:\n- {name: load, query: 'instance:node_cpu:ratio'}\n"
        "filters:\n- name: calm\n  require: (metrics.load < 80%) ?? true\n",
    ),
    "E0204": Explanation(
        "`peer` is read outside of `node.pods.count`, `node.pods.any` and `node.pods.sum`.",
        "`peer` is one of the pods on a node, and which one is only known where they are counted.",
        'filters:\n- name: alone\n  require: peer.labels["app"] != "db"\n',
        'filters:\n- name: alone\n  require: not node.pods.any(peer.labels["app"] == "db")\n',
    ),
    "E0205": Explanation(
        "There is no function of this name.",
        "Functions are those of the language; there are none of your own. Parts of expressions can be named with "
        "`let`.",
        'filters:\n- name: edge\n  require: startswith(node.name, "edge-")\n',
        'filters:\n- name: edge\n  require: starts_with(node.name, "edge-")\n',
    ),
    "E0206": Explanation(
        "A function is given too few or too many arguments.",
        "`min`, `max`, `sum` and `avg` take one argument and are over all nodes; the smaller and the larger of several "
        "values are `least` and `greatest`.",
        "filters:\n- name: cores\n  require: min(node.free.cpu, 4) > 1\n",
        "filters:\n- name: cores\n  require: least(node.free.cpu, 4) > 1\n",
    ),
    "E0207": Explanation(
        "A name of `let` is used above the line that defines it, or is defined twice.",
        "Lines of `let` are read from top to bottom, so there can be no circle.",
        "let:\n- {name: half, value: left / 2}\n- {name: left, value: node.free.cpu}\n"
        "filters:\n- name: room\n  require: half > 1\n",
        "let:\n- {name: left, value: node.free.cpu}\n- {name: half, value: left / 2}\n"
        "filters:\n- name: room\n  require: half > 1\n",
    ),
    "E0208": Explanation(
        "The name of a `let` or of a metric is one that the language has itself, or is none at all; or the name of a "
        "rule is no DNS label or is there twice.",
        "A name of `let` that hid a function would make an expression say something else than its readers think. "
        "Names of rules stand in the reasons of events.",
        "let:\n- {name: count, value: node.requested.pods}\nfilters:\n- name: few\n  require: count < 20\n",
        "let:\n- {name: pods_here, value: node.requested.pods}\nfilters:\n- name: few\n  require: pods_here < 20\n",
    ),
}
