"""Explanations of objects and texts that cannot be read (E00.., E01..)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.messages.explanation import Explanation

TEXT_EXPLANATIONS: Final[Mapping[str, Explanation]] = {
    "E0001": Explanation(
        "The object does not have the shape of a SchedulingPolicy: a field is unknown or missing, or a value has the "
        "wrong type or is out of its range.",
        "The API server would refuse such an object, or drop the unknown field without a word. YAML is behind many of "
        "these: `require: true` is a truth value there and `value: 0.5` a number with a point, but expressions are "
        "texts; put them in quotes.",
        "weigth: 2\nfilters:\n- name: any\n  require: node.ready\n",
        "weight: 2\nfilters:\n- name: any\n  require: node.ready\n",
        title="not the shape of a SchedulingPolicy",
    ),
    "E0100": Explanation(
        "At the marked place stands something that cannot stand there, or the text ends too early. The message lists "
        "what could follow.",
        "Only the first mistake of a text is reported: what follows it would be guesswork. A text may be shorter than "
        'it looks, because YAML takes what follows " #" for a comment.',
        "filters:\n- name: zone\n  require: node.zone ==\n",
        'filters:\n- name: zone\n  require: node.zone == "zone-a"\n',
    ),
    "E0101": Explanation(
        "The sign is no operator of the language.",
        "Values are compared with `==` and `!=`, as in most languages; a single `=` does nothing here. `%` is only "
        "written behind a number: `80%` is 0.8.",
        'filters:\n- name: zone\n  require: node.zone = "zone-a"\n',
        'filters:\n- name: zone\n  require: node.zone == "zone-a"\n',
    ),
    "E0102": Explanation(
        "A number is followed by something that is no unit.",
        "Units are those of Kubernetes' quantities: bytes are written `4G` or `4Gi`, thousandths `500m`. Durations are "
        "`ms`, `s`, `min`, `h` and `d`; a minute is `min`, because `m` is taken.",
        "filters:\n- name: memory\n  require: node.free.memory > 4GB\n",
        "filters:\n- name: memory\n  require: node.free.memory > 4G\n",
    ),
    "E0103": Explanation(
        "A string is written in quotes that the language does not have.",
        'Strings stand in double quotes, "so"; single quotes are left to YAML, in which expressions are written, and '
        "typographic quotes come from word processors.",
        "filters:\n- name: zone\n  require: node.zone == 'zone-a'\n",
        'filters:\n- name: zone\n  require: node.zone == "zone-a"\n',
    ),
    "E0104": Explanation(
        "A string begins and does not end.",
        'A string ends on the line that it begins on. Inside of one, `"` is written `\\"`. YAML may have cut the text: '
        'it takes what follows " #" for a comment unless the whole text is quoted.',
        'filters:\n- name: zone\n  require: node.zone == "zone-a\n',
        'filters:\n- name: zone\n  require: node.zone == "zone-a"\n',
    ),
    "E0105": Explanation(
        "A name has capital letters.",
        "All names of the language are lower-case with `_` between words, so that nobody has to remember which are "
        "not. Keys in brackets, as labels are, keep their capitals.",
        'filters:\n- name: type\n  require: node.instanceType == "m5.large"\n',
        'filters:\n- name: type\n  require: node.instance_type == "m5.large"\n',
    ),
    "E0106": Explanation(
        "A comparison is compared with something.",
        "`1 < x < 5` would compare a truth value with 5. Two comparisons are joined with `and`.",
        "filters:\n- name: cores\n  require: 2 < node.free.cpu < 8\n",
        "filters:\n- name: cores\n  require: 2 < node.free.cpu and node.free.cpu < 8\n",
    ),
    "E0107": Explanation(
        "A text has more than 4,096 characters, or more than 1,024 words and signs.",
        "Every text is compiled in a bounded time. One that is so long mostly lists names, which labels do better, or "
        "repeats a part, which `let` can name.",
        "filters:\n- name: chosen\n  require: node.name in [" + ", ".join(f'"{n}"' for n in range(100, 630)) + "]\n",
        'filters:\n- name: chosen\n  require: node.labels["chosen"] == "yes"\n',
    ),
    "E0108": Explanation(
        "Brackets, `not`, `-` or functions stand in each other more than 32 levels deep, or aggregates more than 4.",
        "Every text is compiled in a bounded time and without recursion that a text could exhaust. Name inner parts "
        "with `let`.",
        "filters:\n- name: any\n  require: " + "(" * 40 + "node.ready" + ")" * 40 + "\n",
        "filters:\n- name: any\n  require: node.ready\n",
    ),
}
