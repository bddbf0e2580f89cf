"""`policysched webhook`: rejects policies that do not compile when they are applied."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.flags.sections import LogsFlags
from policysched.cli.log_setup import log_as
from policysched.cli.options import Context, Kubeconfig


def webhook(  # noqa: PLR0913, PLR0917 - one parameter a flag
    namespace: Annotated[
        str, typer.Option("--namespace", metavar="NAME", help="Namespace of the Secret and the Service.")
    ] = "kube-system",
    service: Annotated[
        str, typer.Option("--service", metavar="NAME", help="Service through which the API server calls the webhook.")
    ] = "policysched-webhook",
    secret: Annotated[
        str, typer.Option("--secret", metavar="NAME", help="Secret that stores the generated certificates.")
    ] = "policysched-webhook",  # noqa: S107 - a name
    configuration: Annotated[
        str,
        typer.Option(
            "--configuration", metavar="NAME", help="ValidatingWebhookConfiguration whose caBundle is updated."
        ),
    ] = "policysched",
    secure_port: Annotated[
        int, typer.Option("--secure-port", min=1, max=65535, help="HTTPS port to listen on.")
    ] = 9443,
    bind_address: Annotated[
        str, typer.Option("--bind-address", metavar="IP", help="IP address to listen on.")
    ] = "0.0.0.0",  # noqa: S104 - API servers come from other hosts
    tls_cert_file: Annotated[
        Path | None,
        typer.Option("--tls-cert-file", metavar="FILE", help="Server certificate, PEM; default: a generated one."),
    ] = None,
    tls_private_key_file: Annotated[
        Path | None,
        typer.Option("--tls-private-key-file", metavar="FILE", help="Private key of the server certificate, PEM."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> int:
    """Run the validating webhook that rejects invalid policies.

    SIGTERM and SIGINT stop it.

    Exit codes: 0 stopped by a signal; 2 a file or a flag is invalid, or the start failed.
    """
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
