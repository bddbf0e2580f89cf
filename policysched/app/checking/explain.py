"""The full explanation of an error code, as `policysched explain` and docs/reference/errors.md show it.

It knows the explanations and asks `check` what it says of their examples, so that what is shown is what is printed. A
line of an example that is too long to be read is shown shortened; the example itself is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from policysched.app.checking.check import findings
from policysched.app.checking.files import nodes_of
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
    """Everything there is to say about a code."""

    code: str
    title: str
    meaning: str
    reason: str
    example: str
    fix: str
    nodes: str

    @property
    def severity(self) -> str:
        """Whether it keeps a policy from being used."""
        return "warning" if self.code.startswith("W") else "error"

    def says(self) -> Iterator[str]:
        """Return what is said about the example, each finding under its text."""
        policy = as_policy(self.example)
        # Few codes are about nodes.
        cluster = nodes_of(one for one, _ in read_yaml(self.nodes, "nodes")) if self.nodes else None
        texts = {one.field: one.text for one in expressions(policy)}
        for one in (found.diagnostic for found in findings(policy, cluster=cluster)):
            text = texts.get(one.field, "")
            if not text or len(text) > LONGEST:
                shown = f"{one.severity}[{one.code}]: {one.message}\n  --> {one.field}:{one.line}:{one.column}"
                yield shown + (f"\n  = help: {one.help}" if one.help else "")
            else:
                yield render(one, text, one.field)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON has it; what it has nothing to say of is left out."""
        said: dict[str, Any] = {
            name: getattr(self, name) for name in ("code", "severity", "title", "meaning", "reason")
        }
        said |= {"example": self.example, "says": list(self.says()), "fix": self.fix, "nodes": self.nodes}
        return {name: value for name, value in said.items() if value}


def explain(code: str) -> Explained:
    """Explain a code, however it is written: `E0301`, `e301`, `301`.

    Raises:
        UsageError: there is no such code; the text names the code of the same number.
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
    """Explain every code, in their order."""
    return [_explained(code) for code in message_table()]


def as_policy(spec: str) -> Object:
    """Make a policy of part of a spec, written as YAML."""
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
