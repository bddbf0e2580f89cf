"""`policysched check`: what is wrong with policies in files."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from policysched.app.check import check_documents
from policysched.app.files import load
from policysched.app.findings import Finding
from policysched.cli.options import TextFormat
from policysched.cli.output import count, print_finding
from policysched.errors import UsageError
from policysched.model.policy import KIND


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files, folders, or - for the standard input.")],
    output: Annotated[TextFormat, typer.Option("--output", "-o", help="How to print what is found.")] = TextFormat.TEXT,
) -> int:
    """Check the policies in files: shape, names and expressions.

    Exit codes: 0 nothing but warnings, 1 errors, 2 a file or a flag cannot be used.
    """
    documents = load(files)
    policies = [document for document in documents if document.object.get("kind") == KIND]
    if not policies:
        raise UsageError(f"no {KIND} in {', '.join(files)}")
    found = check_documents(policies)
    if output is TextFormat.JSON:
        typer.echo(json.dumps([one.to_dict() for one in found], indent=2, ensure_ascii=False))
    else:
        for one in found:
            print_finding(one.text())
        typer.echo(_summary(len(policies), found))
    return int(any(one.is_error for one in found))


def _summary(policies: int, found: list[Finding]) -> str:
    errors = sum(one.is_error for one in found)
    said = (count(policies, "policy", "policies"), count(errors, "error"), count(len(found) - errors, "warning"))
    return "{}: {}, {}".format(*said)
