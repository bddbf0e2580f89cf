"""`policysched sandbox`: an API server in memory, for trying things."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.output import say


def sandbox(
    load: Annotated[
        list[str] | None, typer.Option("--load", metavar="FILE", help="Objects to begin with; may be repeated.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", min=0, max=50_000, help="Nodes to make; 3 unless something is loaded.")
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0 takes a free one.")] = 0,
    kubeconfig_out: Annotated[
        Path | None, typer.Option("--kubeconfig-out", metavar="FILE", help="Where to write the kubeconfig.")
    ] = None,
) -> int:
    """Serve a small Kubernetes API on this machine, with the policy resource installed, until Ctrl-C.

    There is no authentication and nothing is kept: it is for one user on one machine.
    """
    from policysched.app.demo.sandbox_setup import SandboxOptions, serve_sandbox  # noqa: PLC0415 - no server is needed for --help
    from policysched.cli.event_loop import serve  # noqa: PLC0415

    options = SandboxOptions(tuple(load or ()), nodes, port, kubeconfig_out)
    serve(lambda stop: serve_sandbox(options, stop, _announce))
    return 0


def _announce(url: str, kubeconfig: Path) -> None:
    say(f"the sandbox listens on {url}, for this machine only; Ctrl-C ends it")
    say(f"  kubectl --kubeconfig {kubeconfig} get nodes")
    say(f"  policysched run --kubeconfig {kubeconfig}")
