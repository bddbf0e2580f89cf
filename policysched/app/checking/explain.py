"""Explanations of error codes, for `policysched explain` and docs/reference/errors.md.

This module has the explanations and calls `check` for their examples, so that the shown findings are the printed ones.
Long lines of an example are shortened for display only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from policysched.app.checking.check import FindAbsent, findings
from policysched.app.checking.findings import expressions
from policysched.errors import UsageError
from policysched.language import FIELDS, message_table, render
from policysched.language.functions import FUNCTIONS
from policysched.model.policy import API_VERSION, KIND
from policysched.reading.yaml_nodes import read_yaml

LONGEST: Final = 100
_CODE: Final = re.compile(r"([EW]?)0*(\d{1,4})", re.IGNORECASE)
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Explained:
    """The explanation of one error code."""

    code: str
    title: str
    meaning: str
    reason: str
    example: str
    fix: str
    nodes: str

    @property
    def severity(self) -> str:
        """`error` or `warning`."""
        return "warning" if self.code.startswith("W") else "error"

    def says(self) -> Iterator[str]:
        """Yield the findings about the explanation's example, each with its text."""
        policy = as_policy(self.example)
        find_absent = _find_absent(self.nodes) if self.nodes else None
        texts = {one.field: one.text for one in expressions(policy)}
        for one in (found.diagnostic for found in findings(policy, find_absent=find_absent)):
            text = texts.get(one.field, "")
            if not text or len(text) > LONGEST:
                shown = f"{one.severity}[{one.code}]: {one.message}\n  --> {one.field}:{one.line}:{one.column}"
                yield shown + (f"\n  = help: {one.help}" if one.help else "")
            else:
                yield render(one, text, one.field)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation for JSON, without empty parts."""
        said: dict[str, Any] = {
            name: getattr(self, name) for name in ("code", "severity", "title", "meaning", "reason")
        }
        said |= {"example": self.example, "says": list(self.says()), "fix": self.fix, "nodes": self.nodes}
        return {name: value for name, value in said.items() if value}


def _find_absent(nodes: str) -> FindAbsent:
    from policysched.app.checking.nodes import absent_on, nodes_of  # noqa: PLC0415 - NumPy takes 80 ms

    return absent_on(nodes_of(one for one, _ in read_yaml(nodes, "nodes")))


def explain(code: str) -> Explained:
    """Return the explanation of a code, written as `E0301`, `e301` or `301`.

    Raises:
        UsageError: the code does not exist; the text contains the code with the same number.
    """
    match = _CODE.fullmatch(code.strip())
    wanted = [f"{letter}{int(match[2]):04d}" for letter in (match[1].upper() or "EW")] if match else []
    for one in wanted:
        if one in message_table():
            return _explained(one)
    same_number = [f"{letter}{one[1:]}" for one in wanted for letter in "EW"]
    other = next((one for one in same_number if one in message_table()), "")
    name = code.strip().partition("(")[0]
    if name in FUNCTIONS or tuple(name.split(".")) in FIELDS:
        kind = "function" if name in FUNCTIONS else "name"
        raise UsageError(f'"{name}" is a {kind} of expressions, not a code; see docs/reference/functions.md')
    hint = f"did you mean {other}?" if other else "run `policysched explain` to list all codes"
    raise UsageError(f'unknown code "{code}"; {hint}')


def explain_all() -> list[Explained]:
    """Return the explanations of all codes, in order."""
    return [_explained(code) for code in message_table()]


def as_policy(spec: str) -> Object:
    """Return a policy with a spec given as YAML."""
    value = read_yaml(spec, "example")[0][0]
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "example"}, "spec": value}


def shortened(text: str) -> str:
    """Return a text with its longest lines cut in the middle."""
    lines = [
        line if len(line) <= LONGEST else f"{line[: LONGEST - 30].rstrip()} … {line[-20:].lstrip()}"
        for line in text.splitlines()
    ]
    return "\n".join(lines) + "\n"


def _explained(code: str) -> Explained:
    entry = message_table()[code]
    return Explained(code, entry.title, entry.meaning, entry.reason, entry.example, entry.fix, entry.nodes)
