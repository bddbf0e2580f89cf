"""Command-line options that several subcommands share, and how a command reads its own.

An option with one value may be given once: a second value is refused, not taken in silence.
"""

from __future__ import annotations

import enum
from collections import Counter
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer
from typer.core import TyperCommand

from policysched.errors import UsageError

SWITCHES: Final = frozenset(("--leader-elect",))
"""Options that are true where they are named without a value, as Go's are: `--leader-elect`, `--leader-elect=false`."""


class OnceCommand(TyperCommand):
    """A command that counts its options before it reads them."""

    def parse_args(self, ctx, args):  # type: ignore[no-untyped-def]
        """Refuse an option with one value that stands there twice; flags may be repeated.

        Raises:
            UsageError: there is one.
        """
        own = {name for one in self.params for name in one.opts}
        args = [f"{one}=true" if one in SWITCHES & own else one for one in args]
        _, _, order = self.make_parser(ctx).parse_args(args=[*args])
        for parameter, count in Counter(order).items():
            many = any(getattr(parameter, name, False) for name in ("multiple", "is_flag", "count"))
            if count > 1 and parameter.nargs == 1 and not many:
                raise UsageError(f"{parameter.opts[0]} is given {count} times, and takes one value")
        return super().parse_args(ctx, args)


def read_switch(flag: str, text: str | None) -> bool | None:
    """Read the value of a switch as Go reads it, None where it is not given.

    Raises:
        UsageError: it is no value of a switch.
    """
    if text is None:
        return None
    for value, written in ((True, "1 t T TRUE true True"), (False, "0 f F FALSE false False")):
        if text in written.split():
            return value
    raise UsageError(f'{flag} "{text}" is neither true nor false')


class TableFormat(enum.StrEnum):
    """How a decision is printed."""

    TABLE = "table"
    JSON = "json"


ELECTION: Final = "Leader election flags"
"""The headings of `run --help`, as in kube-scheduler's."""

Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="The kubeconfig; absent, the one kubectl would use.",
    ),
]
Context: TypeAlias = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="The kubeconfig's context; absent, its current one.")
]
PrometheusUrl: TypeAlias = Annotated[
    str | None,
    typer.Option("--prometheus-url", metavar="URL", help="The Prometheus server that policies' metrics are asked of."),
]
PrometheusToken: TypeAlias = Annotated[
    Path | None,
    typer.Option("--prometheus-token-file", metavar="FILE", help="A bearer token for it; it may rotate."),
]
PrometheusCa: TypeAlias = Annotated[
    Path | None,
    typer.Option("--prometheus-ca-file", metavar="FILE", help="The authority of its certificate, in PEM form."),
]
Plugin: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="[NAME=]MODULE:FACTORY",
        help="A plugin that the configuration may enable; MODULE may be a file. May be repeated.",
    ),
]
MetricsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--metrics-file", metavar="FILE", help="Metrics from a file instead: NAME: {NODE: NUMBER}."),
]
SecurePort: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--secure-port",
        metavar="PORT",
        min=0,
        max=65535,
        help="Serves health checks, metrics and dry-runs over HTTPS; 0 is off. Absent, 10259 where that is free.",
    ),
]
BindAddress: TypeAlias = Annotated[
    str, typer.Option("--bind-address", metavar="IP", help="The address of that port; 0.0.0.0 or :: is all of them.")
]
CertDir: TypeAlias = Annotated[
    Path | None,
    typer.Option("--cert-dir", metavar="DIR", help="Keeps the self-signed certificate, which else lives in memory."),
]
TlsCertFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--tls-cert-file", metavar="FILE", help="The certificate with its chain, PEM; it may rotate."),
]
TlsKeyFile: TypeAlias = Annotated[
    Path | None, typer.Option("--tls-private-key-file", metavar="FILE", help="The certificate's private key, PEM.")
]
ClientCaFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--client-ca-file", metavar="FILE", help="The authorities of clients' certificates, PEM."),
]
AlwaysAllowPaths: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--authorization-always-allow-paths",
        metavar="PATH[,PATH...]",
        help="What anybody may read; absent, /healthz,/readyz,/livez. May be repeated.",
    ),
]
LeaderElect: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect",
        metavar="BOOL",
        rich_help_panel=ELECTION,
        help="Gain leadership before pods are scheduled; others stand by. (default true)",
    ),
]
LeaseDuration: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-lease-duration",
        metavar="DURATION",
        rich_help_panel=ELECTION,
        help="How long others wait for a renewal before they take over. (default 15s)",
    ),
]
RenewDeadline: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-renew-deadline",
        metavar="DURATION",
        rich_help_panel=ELECTION,
        help="How long a leader tries to renew before it ends. (default 10s)",
    ),
]
RetryPeriod: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-retry-period",
        metavar="DURATION",
        rich_help_panel=ELECTION,
        help="How long is waited between attempts. (default 2s)",
    ),
]
ResourceLock: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-resource-lock",
        metavar="KIND",
        rich_help_panel=ELECTION,
        help="What is held: leases, nothing else. (default leases)",
    ),
]
ResourceName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-resource-name",
        metavar="NAME",
        rich_help_panel=ELECTION,
        help="The name of the lease. (default policysched, with --config kube-scheduler)",
    ),
]
ResourceNamespace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--leader-elect-resource-namespace",
        metavar="NAMESPACE",
        rich_help_panel=ELECTION,
        help="The namespace of the lease. (default kube-system)",
    ),
]
