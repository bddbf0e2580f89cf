"""`policysched webhook`: reject policies that do not compile when a user applies them."""

from __future__ import annotations

from policysched.app.webhook.keeper import CertificatePlace
from policysched.app.webhook.serving import WebhookOptions, run_webhook
from policysched.cli.event_loop import serve
from policysched.cli.flags.processes import WebhookFlags
from policysched.cli.flags.sections import LogsFlags
from policysched.cli.log_setup import log_as


def webhook(flags: WebhookFlags) -> int:
    """Serve the webhook until a signal; return the exit code."""
    log_as(LogsFlags(), ())
    options = WebhookOptions(
        CertificatePlace(flags.namespace, flags.secret, flags.service, flags.configuration),
        flags.secure_port,
        flags.bind_address,
        flags.tls_cert_file,
        flags.tls_private_key_file,
        flags.access.kubeconfig,
        flags.access.context,
    )
    serve(lambda stop: run_webhook(options, stop))
    return 0
