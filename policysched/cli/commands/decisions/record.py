"""`policysched record`: writes a snapshot of a cluster into a file that all commands accept as a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from policysched.cli.options import ClusterOrLive, Context, Kubeconfig
from policysched.cli.output import say, say_left_out, working
from policysched.errors import UsageError


def record(
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write, JSON if it ends with .json, else YAML; - is standard output.",
        ),
    ],
    cluster: ClusterOrLive = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Write a snapshot of a cluster to a file.

    Other commands read the file with --cluster. The snapshot has the fields that scheduling reads and no Secrets. Only
    the owner can read the file.

    Example: `policysched record -o cluster.json`

    Exit codes: 0 success; 1 invalid objects were left out; 2 the cluster, a file or a flag is invalid.
    """
    from policysched.app.dry_run.inputs import LIVE, gather_cluster  # noqa: PLC0415 - not needed for --help
    from policysched.app.snapshot import snapshot  # noqa: PLC0415
    from policysched.cli.event_loop import uncollected, wait_for  # noqa: PLC0415

    with uncollected(), working("reading the cluster"):
        inputs = wait_for(gather_cluster(cluster or [LIVE], kubeconfig=kubeconfig, context=context))
        made, broken = snapshot(inputs.objects)
        _write(made, output)
    for note in inputs.notes:
        say(f"note: {note}", stderr=True)
    left_out = (*inputs.left_out, *broken)
    say_left_out(left_out)
    say(f"{len(made['items']):,} objects written to {'standard output' if output == '-' else output}", stderr=True)
    return int(bool(left_out))


def _write(made: dict[str, Any], output: str) -> None:
    from policysched.app.files.output import replace_privately  # noqa: PLC0415 - as above
    from policysched.cli.formats import OutputFormat, say_value  # noqa: PLC0415

    if output == "-":
        say_value(made, OutputFormat.YAML)
        return
    path = Path(output)
    try:
        replace_privately(path, _encoded(made, path))
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror}") from error


def _encoded(made: dict[str, Any], path: Path) -> bytes:
    if path.suffix == ".json":
        import msgspec  # noqa: PLC0415

        return msgspec.json.encode(made) + b"\n"
    import yaml  # noqa: PLC0415 - only who asks for YAML waits for it

    return yaml.safe_dump(made, sort_keys=False, width=120).encode()
