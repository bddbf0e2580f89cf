"""Who may ask the API server, and the kubeconfigs that say so.

It knows tokens and certificates and makes no request. Tokens are for users named before the start, because the API
server reads its token file once; a certificate can be had for anybody at any time.
"""

from __future__ import annotations

import csv
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane.certificates import Authority

ADMIN: Final = "admin"
ADMIN_GROUP: Final = "system:masters"


class Identities:
    """The users of one control plane, at one URL."""

    def __init__(self, folder: Path, url: str, users: Mapping[str, Sequence[str]]) -> None:
        self.url = url
        self.authority = Authority(folder)
        self.tokens = folder / "tokens.csv"
        self._groups = {ADMIN: (ADMIN_GROUP,)} | {user: tuple(groups) for user, groups in users.items()}
        with self.tokens.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerows([self.token(user), user, user, ",".join(of)] for user, of in self._groups.items())
        self.tokens.chmod(0o600)

    def token(self, user: str = ADMIN) -> str:
        """Give the token of a user named before the start."""
        if user not in self._groups:
            raise KeyError(f"no token for {user}: the control plane was started with {', '.join(self._groups)}")
        return f"token-of-{user}"

    def tls(self) -> ssl.SSLContext:
        """Give what a client needs to trust the server."""
        return ssl.create_default_context(cafile=str(self.authority.certificate))

    def with_token(self, path: Path, user: str = ADMIN) -> Path:
        """Write a kubeconfig with a user's token."""
        return self._write(path, user, {"token": self.token(user)})

    def with_bearer(self, path: Path, token: str) -> Path:
        """Write a kubeconfig with a token that the API server made, as that of a service account."""
        return self._write(path, "bearer", {"token": token})

    def with_certificate(self, path: Path, user: str, groups: Sequence[str]) -> Path:
        """Write a kubeconfig with a certificate for any user and groups."""
        certificate, key = self.authority.client(user, groups)
        return self._write(path, user, {"client-certificate": str(certificate), "client-key": str(key)})

    def _write(self, path: Path, user: str, credentials: Mapping[str, str]) -> Path:
        cluster = {"server": self.url, "certificate-authority": str(self.authority.certificate)}
        name = "controlplane"
        content: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": user, "user": dict(credentials)}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        }
        path.write_text(yaml.safe_dump(content), "utf-8")
        path.chmod(0o600)
        return path
