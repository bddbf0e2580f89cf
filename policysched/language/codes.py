"""Every sentence that the language says, by code.

One table, so that the words stay of one kind and `docs/language.md#messages` can list them. A sentence says what is
wrong, its help says what to write; placeholders in braces are filled in by `diagnose`. `E0209` is there as long as
a construct of the grammar has no meaning yet; it goes when the last of them has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Sentence: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Code:
    """A code: what it is about, its sentences, and a text that gets it.

    Attributes:
        title: The code in a few words.
        message: The usual sentence.
        help: What to do; empty where there is nothing to say.
        example: A text that gets this code.
        place: Where that text stands: `filter`, `appliesTo`, `score`, `cases` (one a line), `let` (`name = text`
            a line) or `policy`, for the codes that need more than one text.
        variants: Other sentences of the same code, each with its own help.
    """

    title: str
    message: str
    help: str
    example: str
    place: str = "filter"
    variants: Mapping[str, Sentence] = field(default_factory=dict)

    @property
    def sentences(self) -> Mapping[str, Sentence]:
        """All sentences by variant, the usual one under the empty name."""
        return {"": (self.message, self.help), **self.variants}


CODES: Mapping[str, Code] = {
    "E0100": Code(
        "unexpected token or end",
        "unexpected {found}, expected {expected}",
        "",
        "node.name == ",
        variants={
            "character": ("unexpected character {found}", ""),
            "escape": ("unknown escape {found} in a string", 'only \\" and \\\\ are escapes'),
            "empty": ("there are no cases", "write at least one, as in `else → 50`"),
        },
    ),
    "E0101": Code("not an operator", "`{found}` is not an operator", "{instead}", 'node.name = "a"'),
    "E0102": Code("unknown unit", "unknown unit `{unit}`", "{instead}", "node.free.memory > 4GB"),
    "E0103": Code("wrong quotes", "{found} does not quote a string", 'strings are written "so"', "node.name == 'a'"),
    "E0104": Code(
        "string not closed", "the string is not closed", 'a string ends with `"` on its own line', 'node.name == "a'
    ),
    "E0105": Code(
        "names are lower-case", "names are lower-case, `{found}` is not", "write `{instead}`", 'node.Name == "a"'
    ),
    "E0106": Code(
        "comparisons do not chain", "comparisons do not chain", "write `a < b and b < c`", "1 < cluster.nodes < 5"
    ),
    "E0107": Code(
        "field too long",
        "{number} characters are more than {limit}",
        "split it with let",
        " " * 5000,
        variants={"tokens": ("{number} tokens are more than {limit}", "split it with let")},
    ),
    "E0108": Code(
        "nested too deep", "nested deeper than {limit} levels", "split it with let", "(" * 40 + "1" + ")" * 40
    ),
    "E0201": Code(
        "unknown name",
        "unknown name `{name}`",
        "{suggestion}",
        'nod.name == "a"',
        variants={
            "function": ("`{name}` is a function", "write `{name}(...)`"),
            "none": ("`{name}` has no fields", ""),
        },
    ),
    "E0202": Code(
        "no such field",
        "`{parent}` has no field `{field}`",
        "{suggestion}",
        'node.nam == "a"',
        variants={
            "key": ("`{path}` needs a key", 'write `{path}["..."]`'),
            "no key": ("`{path}` takes no key", ""),
            "group": ("`{path}` is no value", "it has the fields {fields}"),
            "call": ("`{path}` is a function", 'write `{path}("...")`'),
        },
    ),
    "E0203": Code(
        "metric not declared",
        "metric `{name}` is not declared",
        "declare it under spec.metrics{suggestion}",
        "metrics.load < 1",
    ),
    "E0204": Code(
        "`peer` outside `node.pods.*`",
        "`peer` stands outside of `node.pods.*`",
        "only `node.pods.count`, `.any` and `.sum` know a peer",
        'peer.name == "a"',
    ),
    "E0205": Code("unknown function", "unknown function `{name}`", "{suggestion}", "hass(node.zone)"),
    "E0206": Code(
        "wrong number of arguments",
        "`{name}` takes {expected}, not {number}",
        "",
        "has()",
        variants={"pair": ("`{name}` takes one argument, not {number}", "use least or greatest")},
    ),
    "E0207": Code(
        "`let` repeats or is used before its line",
        "`{name}` is used before its line",
        "move its line up",
        "a = b\nb = 1",
        "let",
        variants={"twice": ("`{name}` is defined twice", "choose another name")},
    ),
    "E0208": Code(
        "a name that is reserved",
        "`{name}` is reserved",
        "choose another name",
        "node = 1",
        "let",
        variants={"form": ("`{name}` is not a name", "names are lower-case letters, digits and _")},
    ),
    "E0209": Code("not available yet", "`{name}` is not available yet", "", "hour() > 3"),
    "E0301": Code(
        "different types or units",
        "cannot compare {left} with {right}",
        "{hint}",
        'node.labels["cores"] > 10',
        variants={
            "add": ("cannot add {left} and {right}", "{hint}"),
            "subtract": ("cannot subtract {right} from {left}", "{hint}"),
            "default": ("cannot default {left} to {right}", "{hint}"),
            "in": ("cannot look for {left} in a list of {right}", "{hint}"),
            "mix": ("`{name}` cannot mix {left} and {right}", "{hint}"),
        },
    ),
    "E0302": Code("condition expected", "condition expected, not {type}", "write a comparison", "node.name"),
    "E0303": Code("number expected", "number expected, not {type}", "{hint}", "-node.name == 1"),
    "E0304": Code("strings have no order", "strings have no order", "write number(...) to convert", 'node.name < "b"'),
    "E0305": Code(
        "conditions are compared with and/not",
        "conditions are not compared",
        "write `a and b`, `a or b` or `not a`",
        "node.ready == true",
    ),
    "E0306": Code("list items differ", "list items differ: {left} and {right}", "", 'node.name in ["a", 1]'),
    "E0307": Code(
        "key or pattern must be a string",
        "string expected, not {type}",
        "write it in double quotes",
        "has(node.labels[1])",
        variants={"constant": ("`{name}` needs a constant here", 'write it out, as in "a"')},
    ),
    "E0308": Code(
        "must be the same for every node",
        "this must be the same for every node",
        "keys, patterns and lists are made of pod.*, cluster.* and constants",
        "has(node.labels[node.name])",
    ),
    "E0309": Code(
        "right side of `in` must be a list",
        "right side of `{operator}` must be a list, not {type}",
        "write `[...]` or split(...)",
        'node.name in "a"',
    ),
    "E0310": Code(
        "units cannot be multiplied or divided so",
        "cannot multiply {left} by {right}",
        "one side of * is a plain number",
        "node.free.cpu * node.free.memory > 1",
        variants={"divide": ("cannot divide {left} by {right}", "divide by a plain number or by the same unit")},
    ),
    "E0311": Code(
        "only strings convert", "only strings convert, not {type}", "leave `{name}` out", "number(cluster.nodes) > 1"
    ),
    "E0312": Code(
        "bad constant",
        "the number is above 2^53",
        "write it with a larger unit or divide",
        "node.free.memory > 9Ei",
        variants={
            "scale": ("`scale` runs from a value to the same value", "lo and hi differ"),
            "clamp": ("the lower bound is above the upper one", "write clamp(x, lo, hi)"),
            "empty": ("`{name}` needs a text that is not empty", ""),
        },
    ),
    "E0401": Code(
        "`by` after a non-aggregate",
        "`{name}` is no aggregate",
        "`by` follows sum, avg, min, max or count",
        "abs(1) by node.zone == 1",
    ),
    "E0405": Code(
        "`node`, `cluster` or an aggregate in `appliesTo` or `when`",
        "`{name}` cannot be read here",
        "appliesTo and when read only pod.* and constants",
        'node.name == "a"',
        "appliesTo",
    ),
    "E0501": Code(
        "a score is a plain number",
        "a score is a plain number, not {type}",
        "{hint}",
        "node.free.memory",
        "score",
        variants={"missing": ("the `missing` arm is no constant", "write a number from 0 to 100")},
    ),
    "E0502": Code("constant score outside 0..100", "constant score {value} is outside 0..100", "", "120", "score"),
    "E0503": Code(
        "`else` not last, or twice; `missing` twice",
        "`{word}` stands twice",
        "",
        "else → 1\nelse → 2",
        "cases",
        {"last": ("`else` is not the last case", "the first true guard wins")},
    ),
    "E0504": Code(
        "case can never be reached", "this case can never be reached", "{reason}", "true → 1\nnode.ready → 2", "cases"
    ),
    "E0505": Code(
        "arms belong to scores, conditions to filters",
        "arms belong to scores",
        "a filter is one condition",
        "node.ready → 1",
        variants={"condition": ("a condition is no score", "write a case, as in `node.ready → 100`")},
    ),
    "E0506": Code("`normalize` outside a score", "`normalize` outside a score", "", "normalize(cluster.nodes) > 50"),
    "E0601": Code(
        "over the cost limit",
        "the policy costs {number} {kind} operations, more than {limit}",
        "use fewer or simpler rules",
        "",
        "policy",
    ),
    "W0701": Code(
        "may be unknown and nothing handles it",
        "may be unknown and nothing handles it",
        "{input} may be missing; write `(...) ?? true` or `?? false`",
        'number(node.labels["a"]) > 1',
        variants={
            "score": (
                "may be missing and nothing handles it",
                "{input} may be missing; write `... ?? 0` or a `missing` arm",
            )
        },
    ),
    "W0702": Code(
        "`missing` arm can never be used", "the `missing` arm can never be used", "", "else → 1\nmissing → 2", "cases"
    ),
    "W0703": Code("condition is constant", "the condition is always {value}", "{hint}", "1 < 2"),
    "W0704": Code(
        "score written as a percentage",
        "the score is written as a percentage",
        "scores run from 0 to 100, and 80% is 0.8",
        "80%",
        "score",
    ),
    "W0705": Code("input present on no node", "`{input}` is present on no node", "", "", "policy"),
}
