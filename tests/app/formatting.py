"""Formatting the spec of a policy for tests, without the lines above it, and an expression too long for one line."""

from __future__ import annotations

from policysched.app.rewriting.formatting import format_source

HEAD = "apiVersion: policysched.io/v1beta1\nkind: SchedulingPolicy\nmetadata: {name: p}\nspec:\n"
LONG = " && ".join(f'node.labels["{letter * 20}"]=="a"' for letter in "abc")
CANONICAL = [f'node.labels["{letter * 20}"] == "a"' for letter in "abc"]


def formatted(spec: str) -> str:
    made = format_source(HEAD + spec, "p.yaml")
    assert made.findings == ()
    assert made.text.startswith(HEAD)
    return made.text.removeprefix(HEAD)
