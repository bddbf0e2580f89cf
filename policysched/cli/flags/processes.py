"""Flags of the commands that run until they are stopped: run, webhook, sandbox, demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.flags.base import Flags
from policysched.cli.flags.sections import RunFlags
from policysched.cli.flags.shared import ClusterAccess, kube_version_option
from policysched.model.release import DEFAULT
from policysched.model.release_choice import AUTO

__all__ = ["DemoFlags", "RunFlags", "SandboxFlags", "WebhookFlags"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFlags(Flags):
    """Run the validating webhook that rejects invalid policies.

    SIGTERM and SIGINT stop it.

    Exit codes: 0 stopped by a signal; 2 a file or a flag is invalid, or the start failed.
    """

    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="Namespace of the Secret and the Service.")
    ] = "kube-system"
    service: Annotated[
        str, typer.Option("--service", metavar="NAME", help="Service through which the API server calls the webhook.")
    ] = "policysched-webhook"
    secret: Annotated[
        str, typer.Option("--secret", metavar="NAME", help="Secret that stores the generated certificates.")
    ] = "policysched-webhook"  # noqa: S105 - a name
    configuration: Annotated[
        str,
        typer.Option(
            "--configuration", metavar="NAME", help="ValidatingWebhookConfiguration whose caBundle is updated."
        ),
    ] = "policysched"
    secure_port: Annotated[int, typer.Option("--secure-port", min=1, max=65535, help="HTTPS port to listen on.")] = 9443
    bind_address: Annotated[str, typer.Option("--bind-address", metavar="IP", help="IP address to listen on.")] = (
        "0.0.0.0"  # noqa: S104 - API servers connect from other hosts
    )
    tls_cert_file: Annotated[
        Path | None,
        typer.Option("--tls-cert-file", metavar="FILE", help="Server certificate, PEM; default: a generated one."),
    ] = None
    tls_private_key_file: Annotated[
        Path | None,
        typer.Option("--tls-private-key-file", metavar="FILE", help="Private key of the server certificate, PEM."),
    ] = None
    access: ClusterAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxFlags(Flags):
    """Run a small in-memory Kubernetes API server on this machine.

    The SchedulingPolicy resource is installed. The server has no authentication and stores nothing on disk.
    Ctrl-C stops it.

    Exit codes: 0 stopped by a signal; 2 a file or a flag is invalid, or the port is in use.
    """

    load: Annotated[
        list[str] | None, typer.Option("--load", metavar="FILE", help="Objects to create at the start; repeatable.")
    ] = None
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", min=0, max=50_000, help="Number of nodes to create; default: 3, with --load 0."),
    ] = None
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 selects a free port.")] = 0
    kube_version: Annotated[
        str,
        kube_version_option(f"Kubernetes minor that the server reports; `auto` is {DEFAULT.minor}."),
    ] = AUTO
    kubeconfig_out: Annotated[
        Path | None,
        typer.Option("--kubeconfig-out", metavar="FILE", help="Kubeconfig file to write; default: a temporary file."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoFlags(Flags):
    """Show how a policy places pods; needs no cluster and no kubectl.

    The demo applies, edits, breaks and deletes a policy while pods are created.

    Exit codes: 0 success; 2 a flag is invalid.
    """

    devices: Annotated[bool, typer.Option("--devices", help="Show pods with resource claims for GPUs instead.")] = False
    gang: Annotated[bool, typer.Option("--gang", help="Show pods of a PodGroup that are scheduled together.")] = False
