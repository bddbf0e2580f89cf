"""`policysched webhook`: refuses policies that do not compile as they are applied."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.flags.sections import LogsFlags
from policysched.cli.log_setup import log_as
from policysched.cli.options import Context, Kubeconfig


def webhook(  # noqa: PLR0913, PLR0917 - one parameter a flag
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="The namespace of the Secret and of the Service.")
    ] = "kube-system",
    service: Annotated[
        str, typer.Option("--service", metavar="NAME", help="The Service by which API servers reach it.")
    ] = "policysched-webhook",
    secret: Annotated[
        str, typer.Option("--secret", metavar="NAME", help="The Secret in which its certificates are kept.")
    ] = "policysched-webhook",  # noqa: S107 - a name
    configuration: Annotated[
        str,
        typer.Option(
            "--configuration", metavar="NAME", help="The ValidatingWebhookConfiguration that is told whom to trust."
        ),
    ] = "policysched",
    secure_port: Annotated[int, typer.Option("--secure-port", min=1, max=65535, help="The port.")] = 9443,
    bind_address: Annotated[str, typer.Option("--bind-address", metavar="IP", help="The address.")] = "0.0.0.0",  # noqa: S104 - API servers come from other hosts
    tls_cert_file: Annotated[
        Path | None,
        typer.Option(
            "--tls-cert-file", metavar="FILE", help="A certificate of your own; absent, one is made and kept."
        ),
    ] = None,
    tls_private_key_file: Annotated[
        Path | None, typer.Option("--tls-private-key-file", metavar="FILE", help="Its key.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Serve the validating webhook until SIGTERM or SIGINT: policies with errors are refused as they are applied."""
    log_as(LogsFlags(), ())
    from policysched.app.webhook.keeper import CertificatePlace  # noqa: PLC0415 - no server is needed for --help
    from policysched.app.webhook.serving import WebhookOptions, run_webhook  # noqa: PLC0415
    from policysched.cli.event_loop import serve  # noqa: PLC0415

    options = WebhookOptions(
        CertificatePlace(namespace, secret, service, configuration),
        secure_port,
        bind_address,
        tls_cert_file,
        tls_private_key_file,
        kubeconfig,
        context,
    )
    serve(lambda stop: run_webhook(options, stop))
    return 0
