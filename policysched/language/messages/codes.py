"""Every sentence that the language says, by code.

One table, so that the words stay of one kind and `docs/language.md#messages` can list them. A sentence says what is
wrong, its help says what to write; placeholders in braces are filled in by `diagnose`. The codes about texts and names
stand in `text_codes`.
"""

from __future__ import annotations

from collections.abc import Mapping

from policysched.language.messages.sentences import Code, Sentence
from policysched.language.messages.text_codes import TEXT_CODES

__all__ = ["CODES", "Code", "Sentence"]

CODES: Mapping[str, Code] = {
    **TEXT_CODES,
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
    "E0302": Code("condition expected", "condition expected, not {type}", "{hint}", "node.name"),
    "E0303": Code("number expected", "number expected, not {type}", "{hint}", "-node.name == 1"),
    "E0304": Code(
        "strings have no order",
        "strings have no order",
        "write number(...) or version(...) to convert",
        'node.name < "b"',
    ),
    "E0305": Code(
        "conditions are compared with and/not",
        "conditions are not compared",
        "{hint}",
        "node.ready == true",
    ),
    "E0306": Code("list items differ", "list items differ: {left} and {right}", "{hint}", 'node.name in ["a", 1]'),
    "E0307": Code(
        "key or pattern must be a string",
        "string expected, not {type}",
        "write it in double quotes",
        "has(node.labels[1])",
        variants={"constant": ("`{name}` needs a constant here", "write it out in double quotes")},
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
        "only strings convert",
        "only strings convert, not {type}",
        "leave `{name}` out",
        "number(cluster.nodes) > 1",
        variants={
            "version": ("only strings convert, not {type}", 'versions are written in quotes, as in version("1.28")')
        },
    ),
    "E0312": Code(
        "bad constant",
        "the number is above 2^53",
        "amounts are exact up to 2^53; in bytes that is 8Pi",
        "node.free.memory > 9Ei",
        variants={
            "scale": ("`scale` runs from a value to the same value", "lo and hi have to differ"),
            "clamp": ("the lower bound is above the upper one", "write clamp(x, lo, hi)"),
            "empty": ("`{name}` needs a text that is not empty", "write at least one character"),
            "time": ("`{found}` is no time of the day", 'times run from "00:00" to "23:59"'),
            "clock": ("`clock` runs from a time to the same time", "the two times have to differ"),
            "weekday": ("`{found}` is no day of the week", 'days are "mon" "tue" "wed" "thu" "fri" "sat" "sun"'),
            "zone": ("`{found}` is no time zone", "{suggestion}"),
            "version": ("`{found}` is no version", 'versions are written as "1.28", "v1.28.3" or "1.29.0-rc.1"'),
        },
    ),
    "E0313": Code(
        "text too long",
        "the text has at least {number} characters, more than {limit}",
        "put fewer parts together; the length of an annotation is not known here and does not count",
        'a = "-/-/-/-/-/-/-/-"\nb = concat(a, a, a, a, a, a, a, a)\nc = concat(b, b, b, b, b, b, b, b)\n'
        "d = concat(c, c, c, c, c)",
        "let",
    ),
    "E0401": Code(
        "`by` after a non-aggregate",
        "`{name}` is no aggregate",
        "`by` follows sum, avg, min, max or count",
        "abs(1) by node.zone == 1",
    ),
    "E0402": Code(
        "`node.pods.*` nested",
        "`{name}` stands inside of `node.pods.*`",
        "write the inner one beside the outer one, joined with and",
        "node.pods.any(node.pods.count(true) > 1)",
        variants={
            "let": (
                "`{name}` uses `node.pods.*` and stands inside of it",
                "write the inner one beside the outer one, joined with and",
            )
        },
    ),
    "E0403": Code(
        "aggregate of something that is no node column",
        "`{name}` needs something that differs between nodes",
        "name something of node.*; how many nodes there are is cluster.nodes",
        "sum(pod.priority) > 0",
        variants={
            "pods": ("`{name}` is over nodes, and a peer is no node", "aggregates read no peer"),
        },
    ),
    "E0404": Code(
        "`by` key is not a node string",
        "`by` needs a string of the node, not {type}",
        'write `by node.zone`, or `by node.labels["rack"]`',
        "sum(node.free.cpu) by node.ready > 3",
        variants={
            "other": ("`by` needs a string of the node", 'write `by node.zone`, or `by node.labels["rack"]`'),
            "computed": (
                "`by` needs a string of the node as it is",
                'name a label itself, as in `by node.labels["rack"]`',
            ),
        },
    ),
    "E0405": Code(
        "`node`, `cluster` or an aggregate in `appliesTo` or `when`",
        "`{name}` cannot be read here",
        "appliesTo and when read only pod.*, constants and the time",
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
    "E0502": Code(
        "constant score outside 0..100",
        "constant score {value} is outside 0..100",
        "0 is worst and 100 is best",
        "120",
        "score",
    ),
    "E0503": Code(
        "`else` not last, or twice; `missing` twice",
        "`{word}` stands twice",
        "keep one of them",
        "else → 1\nelse → 2",
        "cases",
        {"last": ("`else` is not the last case", "the first true guard wins: move it to the end")},
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
    "E0506": Code(
        "`normalize` outside a score",
        "`normalize` outside a score",
        "only scores are normalized; elsewhere write x / max(x)",
        "normalize(cluster.nodes) > 50",
        variants={"inner": ("`normalize` inside of an aggregate or of `node.pods.*`", "normalize what comes out")},
    ),
    "E0601": Code(
        "over the cost limit",
        "the policy costs {number} {kind} operations, more than {limit}",
        "use fewer or simpler rules; equal parts count once",
        "",
        "policy",
        variants={
            "size": ("the policy has {number} {kind}, more than {limit}", "split it into several policies"),
            "room": (
                "the policy takes {number} units, more than the policies in force leave of {limit}",
                "use fewer or simpler rules, here or in the others; a unit is one operation over all nodes",
            ),
        },
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
        "`missing` arm can never be used",
        "the `missing` arm can never be used",
        "this score is missing on no node",
        "node.ready → 5\nelse → 1\nmissing → 2",
        "cases",
    ),
    "W0703": Code(
        "condition is constant",
        "the condition is always {value}",
        "{hint}",
        "1 < 2",
        variants={
            "zero": ("a division by zero has no value", "it is always missing; divide by something else"),
            "never": ("the condition is never true", "{hint}"),
        },
    ),
    "W0704": Code(
        "score written as a percentage",
        "the score is written as a percentage",
        "scores run from 0 to 100, and 80% is 0.8",
        "80%",
        "score",
    ),
    "W0705": Code(
        "input present on no node",
        "`{input}` is present on no node",
        "",
        "",
        "policy",
        variants={
            "value": ("`{input}` has this value on no node", ""),
            "number": ('`{input}` is "{value}" on node {node}, which is no number', "it is missing there"),
        },
    ),
    "W0706": Code(
        "character that nobody sees",
        "the text holds {character}, which nobody sees",
        "leave it out, or write what is meant",
        "",
        "policy",
    ),
    "W0707": Code(
        "score tells nodes hardly apart",
        "the score is the same on every node",
        "it prefers no node to another",
        "50",
        "score",
        variants={
            "range": ("the score stays between {low} and {high}", "scores run from 0 to 100; write scale(x, lo, hi)"),
            "low": ("the score is never above 0", "scores run from 0 to 100; write scale(x, lo, hi)"),
            "high": ("the score is never below 100", "scores run from 0 to 100; write scale(x, lo, hi)"),
        },
    ),
    "W0708": Code(
        "very many cores",
        "`{number}` is {number} cores",
        "a number without `m` counts cores; thousandths are `{number}m`",
        "node.free.cpu > 500",
    ),
    "W0709": Code("`let` is not used", "`{name}` is not used", "leave it out", "", "policy"),
    "W0710": Code(
        "policy without rules",
        "the policy has neither filters nor scores",
        "it does nothing; write `filters` or `scores`",
        "",
        "policy",
    ),
}
