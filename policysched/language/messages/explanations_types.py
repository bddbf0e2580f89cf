"""Explanations of mistakes about types, units and constants (E03..)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.messages.explanation import Explanation

_TEAMS: Final = (
    "let:\n"
    + "".join(
        f"- {{name: {name}, value: '\"{','.join(f'team-{number}' for number in numbers)}\"'}}\n"
        for name, numbers in (("old", range(100, 400)), ("new", range(400, 700)))
    )
    + "filters:\n- name: teams\n"
)

TYPE_EXPLANATIONS: Final[Mapping[str, Explanation]] = {
    "E0301": Explanation(
        "Two values of different kinds or units are compared, added or mixed.",
        "Nothing is converted silently. Labels and annotations are strings even where they look like numbers; bytes, "
        "cpu, durations and plain numbers are units of their own. `??` binds tighter than a comparison: to default a "
        "condition, write `(x < 1) ?? true`.",
        'filters:\n- name: cores\n  require: node.labels["cores"] > 10\n',
        'filters:\n- name: cores\n  require: (number(node.labels["cores"]) > 10) ?? false\n',
    ),
    "E0302": Explanation(
        "Where a condition belongs stands a value of another kind.",
        "Strings and numbers are neither true nor false. Say what you ask of the value: `has(x)` whether it is there, "
        "a comparison what it is.",
        'filters:\n- name: gpu\n  require: node.labels["gpu"]\n',
        'filters:\n- name: gpu\n  require: has(node.labels["gpu"])\n',
    ),
    "E0303": Explanation(
        "Where a quantity belongs stands a value of another kind.",
        "Labels and annotations are strings; `number(...)` reads a number from one, and is missing where it is none.",
        'scores:\n- name: cores\n  value: scale(node.labels["cores"], 0, 64) ?? 0\n',
        'scores:\n- name: cores\n  value: scale(number(node.labels["cores"]), 0, 64) ?? 0\n',
    ),
    "E0304": Explanation(
        "Two strings are compared with `<`, `<=`, `>` or `>=`.",
        'As strings "9" comes behind "10". Say which order is meant: `number(...)` that of numbers, `version(...)` '
        "that of versions.",
        'filters:\n- name: driver\n  require: node.labels["driver"] >= "535.104"\n',
        'filters:\n- name: driver\n  require: (version(node.labels["driver"]) >= version("535.104")) ?? false\n',
    ),
    "E0305": Explanation(
        "Conditions are compared with `==` or `!=`, or looked for in a list.",
        "A condition is true as it stands: `x == true` is `x`, `x == false` is `not x`. What is unknown would have to "
        "equal something, too.",
        "filters:\n- name: usable\n  require: node.cordoned == false\n",
        "filters:\n- name: usable\n  require: not node.cordoned\n",
    ),
    "E0306": Explanation(
        "The items of a list are of different kinds or units.",
        "A value is looked for among values of its own kind; a string never equals a number.",
        'filters:\n- name: gpus\n  require: node.labels["gpus"] in ["4", 8]\n',
        'filters:\n- name: gpus\n  require: node.labels["gpus"] in ["4", "8"]\n',
    ),
    "E0307": Explanation(
        "A key, a pattern or a separator is no string, or has to be a constant and is none.",
        "Keys of labels and annotations, and what strings are compared with, are strings themselves.",
        "filters:\n- name: rack\n  require: has(node.labels[7])\n",
        'filters:\n- name: rack\n  require: has(node.labels["7"])\n',
    ),
    "E0308": Explanation(
        "A key, a pattern or a list is not the same for all nodes.",
        "A rule is computed for all nodes at once; which label it reads has to be known before. Keys may be made of "
        "the pod, the cluster and constants.",
        'filters:\n- name: team\n  require: node.labels[node.zone] == "yes"\n',
        'filters:\n- name: team\n  require: node.labels[concat("team-", pod.namespace)] == "yes"\n',
    ),
    "E0309": Explanation(
        "On the right of `in` stands no list.",
        "`in` looks for a value in a list of constants, or among the parts of a string that `split` makes. Whether a "
        "string is part of another is `contains`.",
        'filters:\n- name: zone\n  require: node.zone in "zone-a"\n',
        'filters:\n- name: zone\n  require: node.zone in ["zone-a"]\n',
    ),
    "E0310": Explanation(
        "Two units are multiplied or divided in a way that has no meaning here.",
        "There are no cpu-bytes. Divide by a plain number or by the same unit; the latter gives a plain number, which "
        "can be weighed against others.",
        "scores:\n- name: share\n  value: node.free.cpu / node.allocatable.memory\n",
        "scores:\n- name: share\n  value: 100 * node.free.cpu / node.allocatable.cpu\n",
    ),
    "E0311": Explanation(
        "`number(...)` or `version(...)` is given something that is no string.",
        "They read a number or a version from a string. What is a number already needs no conversion; a version is "
        "written as a string.",
        "filters:\n- name: pods\n  require: number(node.free.pods) > 10\n",
        "filters:\n- name: pods\n  require: node.free.pods > 10\n",
    ),
    "E0312": Explanation(
        "A constant cannot be what it has to be here: a time of the day, a time zone, a version, a pattern, bounds "
        "that differ, a number up to 2^53; or a label selector of the policy is malformed.",
        "What can be seen to be wrong before any pod comes is said at once.",
        'filters:\n- name: at-night\n  when: clock("22:00", "6 am")\n  require: node.labels["pool"] == "batch"\n',
        'filters:\n- name: at-night\n  when: clock("22:00", "06:00")\n  require: node.labels["pool"] == "batch"\n',
    ),
    "E0313": Explanation(
        "`concat` makes a text of more than 4,096 characters, however short the labels in it are.",
        "A text that is too long is not made: it would be missing on every node. Where that depends on what is put "
        "together, as with annotations, the policy compiles, and the text is missing where it is too long.",
        _TEAMS + '  require: contains(concat(",", old, ",", new, ","), concat(",", pod.namespace, ","))\n',
        'filters:\n- name: teams\n  require: starts_with(pod.namespace, "team-")\n',
    ),
}
