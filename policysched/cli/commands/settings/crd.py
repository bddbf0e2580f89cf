"""`policysched crd`: prints the CustomResourceDefinition of policies."""

from __future__ import annotations

from policysched.cli.formats import TextFormat
from policysched.cli.options import TextOutput
from policysched.cli.output import say_json, say_lines


def crd(
    output: TextOutput = TextFormat.YAML,
) -> int:
    """Print the CustomResourceDefinition of SchedulingPolicy for this version.

    Example: `policysched crd | kubectl apply -f -`

    Exit codes: 0 success.
    """
    from policysched.app.definition import definition_text  # noqa: PLC0415 - not needed for --help

    text = definition_text()
    if output is TextFormat.JSON:
        from policysched.reading import bounded_yaml  # noqa: PLC0415 - only JSON needs it

        say_json(bounded_yaml.load(text))
    else:
        say_lines(text)
    return 0
