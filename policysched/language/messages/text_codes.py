"""What is said about texts that do not parse, and about names (E01.., E02..)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policysched.language.messages.sentences import Code

TEXT_CODES: Final[Mapping[str, Code]] = {
    "E0100": Code(
        "unexpected token or end",
        "unexpected {found}, expected {expected}",
        "{instead}",
        "node.name == ",
        variants={
            "character": ("unexpected character {found}", "{instead}"),
            "apart": ("a number and its unit stand together", "write `{number}{unit}`"),
            "escape": ("unknown escape {found} in a string", 'only \\" and \\\\ are escapes'),
            "empty": ("there are no cases", "write at least one, as in `else → 50`"),
        },
    ),
    "E0101": Code("not an operator", "`{found}` is not an operator", "{instead}", 'node.name = "a"'),
    "E0102": Code("unknown unit", "unknown unit `{unit}`", "{instead}", "node.free.memory > 4GB"),
    "E0103": Code("wrong quotes", "{found} does not quote a string", "{instead}", "node.name == 'a'"),
    "E0104": Code(
        "string not closed", "the string is not closed", 'close it with `"` on the same line', 'node.name == "a'
    ),
    "E0105": Code(
        "names are lower-case", "names are lower-case, `{found}` is not", "write {instead}", 'node.Name == "a"'
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
        "nested too deep",
        "nested deeper than {limit} levels",
        "split it with let",
        "(" * 40 + "1" + ")" * 40,
        variants={
            "aggregates": ("more than {limit} aggregates stand in each other", "take the inner ones apart"),
        },
    ),
    "E0201": Code(
        "unknown name",
        "unknown name `{name}`",
        "{suggestion}",
        'nod.name == "a"',
        variants={
            "function": ("`{name}` is a function", "write `{name}(...)`"),
            "none": ("`{name}` has no fields", "write `{name}`"),
        },
    ),
    "E0202": Code(
        "no such field",
        "`{parent}` has no field `{field}`",
        "{suggestion}",
        'node.nam == "a"',
        variants={
            "key": ("`{path}` needs a key", 'write `{path}["..."]`'),
            "resource": ("`{path}` needs a key", 'write `{path}.cpu`, `{path}.memory` or `{path}["nvidia.com/gpu"]`'),
            "no key": ("`{path}` takes no key", "write `{path}`"),
            "group": ("`{path}` is no value", "{instead}"),
            "call": ("`{path}` is a function", 'write `{path}("...")`'),
            "tally": ("`{path}` is a function", "write `{path}(...)`"),
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
        "write `{form}`",
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
}
