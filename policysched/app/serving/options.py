"""`ServingOptions`: what the flags say of the port, with kube-scheduler's defaults.

Source: k8s.io/apiserver/pkg/server/options/{serving,authorization}.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from policysched.errors import UsageError

PORT: Final = 10259
ALWAYS_ALLOWED: Final = ("/healthz", "/readyz", "/livez")
ANYWHERE: Final = "0.0.0.0"  # noqa: S104 - probes and Prometheus come from other hosts; whoever comes is authorised


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """Where to serve, with which certificate, and to whom without asking."""

    port: int = PORT
    """0 is off."""
    bind_address: str = ANYWHERE
    certificate_folder: Path | None = None
    """Keeps the self-signed certificate; absent, it lives in memory."""
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    always_allowed: tuple[str, ...] = ALWAYS_ALLOWED
    """Paths that anybody may read; one that ends with `*` stands for all that begin so."""
    is_optional: bool = False
    """Whether the scheduler goes on without a port that is taken: it does where nobody asked for this port."""

    def check(self) -> None:
        """Make sure that the flags go together.

        Raises:
            UsageError: they do not.
        """
        try:
            ipaddress.ip_address(self.bind_address)
        except ValueError as error:
            raise UsageError(f'--bind-address: "{self.bind_address}" is no IP address') from error
        if (self.certificate is None) is not (self.key is None):
            raise UsageError("--tls-cert-file and --tls-private-key-file go together: give both or none")
        for path in self.always_allowed:
            if not path.startswith("/") or "*" in path[:-1]:
                raise UsageError(
                    f'--authorization-always-allow-paths: "{path}" is no path such as /healthz or /healthz/*'
                )

    def allows(self, path: str) -> bool:
        """Return whether anybody may read a path."""
        return any(path == one or (one[-1] == "*" and path.startswith(one[:-1])) for one in self.always_allowed)


def read_paths(given: Iterable[str]) -> tuple[str, ...]:
    """Read a flag that may be repeated and whose values may be lists with commas."""
    return tuple(path for one in given for path in one.split(",") if path)
