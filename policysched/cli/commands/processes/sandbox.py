"""`policysched sandbox`: runs an API server in memory for trials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.output import say


def sandbox(
    load: Annotated[
        list[str] | None, typer.Option("--load", metavar="FILE", help="Objects to create at the start; repeatable.")
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", min=0, max=50_000, help="Number of nodes to create; default: 3, with --load 0."),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 selects a free port.")
    ] = 0,
    kubeconfig_out: Annotated[
        Path | None,
        typer.Option("--kubeconfig-out", metavar="FILE", help="Kubeconfig file to write; default: a temporary file."),
    ] = None,
) -> int:
    """Run a small in-memory Kubernetes API server on this machine.

    The SchedulingPolicy resource is installed. The server has no authentication and stores nothing on disk.
    Ctrl-C stops it.

    Exit codes: 0 stopped by a signal; 2 a file or a flag is invalid, or the port is in use.
    """
    from policysched.app.demo.sandbox_setup import SandboxOptions, serve_sandbox  # noqa: PLC0415 - no server is needed for --help
    from policysched.cli.event_loop import serve  # noqa: PLC0415

    options = SandboxOptions(tuple(load or ()), nodes, port, kubeconfig_out)
    serve(lambda stop: serve_sandbox(options, stop, _announce))
    return 0


def _announce(url: str, kubeconfig: Path) -> None:
    say(f"sandbox listens on {url} (this machine only); Ctrl-C stops it")
    say(f"  kubectl --kubeconfig {kubeconfig} get nodes")
    say(f"  policysched run --kubeconfig {kubeconfig}")
