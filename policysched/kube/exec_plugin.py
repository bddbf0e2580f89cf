"""`ExecPlugin`: runs the exec plugin of a kubeconfig, with limits on time and output.

The client library's own implementation has no limits. A plugin that hangs, because its server hangs, would block all
requests that need its credentials.

Source: client-go/plugin/pkg/client/auth/exec/exec.go, kubernetes.aio.config.exec_provider.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

import msgspec

from policysched.kube.client_library import ConfigException, ExecProvider
from policysched.model.decode import ObjectError, decode
from policysched.visible import visible

PATIENCE: Final = 60.0
"""Longest run time of an exec plugin, after which the plugin is killed. Units: seconds."""
LARGEST: Final = 1 << 20
"""Largest output of an exec plugin; more is an error. Units: bytes."""
_NEEDED: Final = ("apiVersion", "kind", "status")


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    """The status of the ExecCredential that an exec plugin prints."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class ExecPlugin(ExecProvider):
    """An exec plugin with the interface that the client library's loader calls."""

    async def run(self, _: Any = None) -> Any:
        """Run the exec plugin and return the status of the ExecCredential that it prints.

        Raises:
            ConfigException: the plugin failed, took too long or printed no valid ExecCredential.
        """
        spec = {"interactive": sys.stdout.isatty()}
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        environment = {**self.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*self.args, env=environment, stdout=pipe, stderr=pipe)
        try:
            async with asyncio.timeout(PATIENCE):
                printed, said = await asyncio.gather(_read(process.stdout), _read(process.stderr))
                code = await process.wait()
        except TimeoutError as error:
            raise ConfigException(f"exec: the plugin did not end within {PATIENCE:g} s") from error
        finally:
            # Kills a running plugin, and closes its pipes, which its child processes can hold open.
            process._transport.close()  # type: ignore[attr-defined]
        if code:
            raise ConfigException(
                f"exec: the plugin ended with code {code}: {visible(said.decode(errors='replace').strip())}"
            )
        return self._status(printed)

    def _status(self, printed: bytes) -> Any:
        try:
            credential = json.loads(printed)
        except (ValueError, RecursionError) as error:
            raise ConfigException(f"exec: the plugin printed no JSON: {error}") from error
        missing = [key for key in _NEEDED if not isinstance(credential, dict) or key not in credential]
        if missing:
            raise ConfigException(f"exec: the plugin printed no ExecCredential: {missing[0]} is missing")
        if credential["apiVersion"] != self.api_version:
            raise ConfigException(f"exec: the apiVersion of the plugin is not {self.api_version}")
        return _checked(credential["status"])


def _checked(status: Any) -> dict[str, Any]:
    """Return the non-empty fields of an ExecCredential's status; raise an error for fields of a wrong type.

    Raises:
        ConfigException: a field has the wrong type.
    """
    try:
        decode(_Status, "ExecCredential", status)
    except ObjectError as error:
        place = ".".join(filter(None, ("status", error.field)))
        raise ConfigException(f"exec: the plugin printed no ExecCredential: {place}: {error.reason}") from error
    return {name: value for name, value in status.items() if value}


async def _read(pipe: asyncio.StreamReader | None) -> bytes:
    printed = bytearray()
    while pipe is not None and (piece := await pipe.read(1 << 16)):
        printed += piece
        if len(printed) > LARGEST:
            raise ConfigException(f"exec: the plugin printed more than {LARGEST >> 10} KiB")
    return bytes(printed)
