"""`policysched sandbox`: an API server in memory, for experiments."""

from __future__ import annotations

from pathlib import Path

from policysched.app.demo.sandbox_setup import SandboxOptions, serve_sandbox
from policysched.cli.event_loop import serve
from policysched.cli.flags.processes import SandboxFlags
from policysched.cli.output import print_text


def sandbox(flags: SandboxFlags) -> int:
    """Serve the sandbox until a signal; return the exit code."""
    options = SandboxOptions(tuple(flags.load or ()), flags.nodes, flags.port, flags.kubeconfig_out, flags.kube_version)
    serve(lambda stop: serve_sandbox(options, stop, _announce))
    return 0


def _announce(url: str, kubeconfig: Path) -> None:
    print_text(f"sandbox listens on {url} (this machine only); Ctrl-C stops it")
    print_text(f"  kubectl --kubeconfig {kubeconfig} get nodes")
    print_text(f"  policysched run --kubeconfig {kubeconfig}")
