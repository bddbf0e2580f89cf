"""Set up a sandbox for policies: install our CustomResourceDefinition, load files, write a kubeconfig.

It wires clock, randomness and files to the in-memory API server and knows no scheduling.
"""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from policysched.app.checking.schema import policy_definition
from policysched.app.clock import SystemClock
from policysched.app.daemon_threads import unless
from policysched.app.files.objects import Document, load
from policysched.errors import PolicyschedError, UsageError
from policysched.late_dataclass import dataclass
from policysched.model.policy import API_GROUP, PLURAL
from policysched.sandbox import Sandbox, load_rank, sandbox_nodes
from policysched.sandbox.objects.errors import StatusError

DEFAULT_NODES: Final = 3


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """How a sandbox is filled and where it listens."""

    files: tuple[str, ...] = ()
    nodes: int | None = None
    """How many nodes to make; absent, three unless files are loaded."""
    port: int = 0
    """Where to listen; 0 takes a free port."""
    kubeconfig: Path | None = None
    """Where to write the kubeconfig; absent, into a temporary folder."""


def new_sandbox(*, kubelet_seconds: float | None = 0.05) -> Sandbox:
    """Make a sandbox with the policy resource installed; it is not started."""
    now = SystemClock().now
    # Microseconds: no sandbox writes faster, so versions of one that was started before are below.
    first_version = int(now().timestamp() * 1_000_000)
    made = Sandbox(now, random.SystemRandom(), first_version=first_version, kubelet_seconds=kubelet_seconds)
    made.load([dict(policy_definition())])
    return made


def fill(sandbox: Sandbox, documents: Sequence[Document]) -> None:
    """Load objects from files, those that others need first.

    Raises:
        UsageError: an object is refused; the text says where it stands.
    """
    own = f"{PLURAL}.{API_GROUP}"
    for one in sorted(documents, key=lambda document: load_rank(document.object)):
        metadata = one.object.get("metadata")
        definition = one.object["kind"] == "CustomResourceDefinition"
        if definition and isinstance(metadata, dict) and metadata.get("name") == own:
            continue
        try:
            sandbox.load([dict(one.object)])
        except (StatusError, KeyError, TypeError, AttributeError) as error:
            reason = error.args[0] if isinstance(error, StatusError | KeyError) else "the object is malformed"
            raise UsageError(f"{one.where}: {reason}") from error


async def serve_sandbox(options: SandboxOptions, stop: asyncio.Event, announce: Callable[[str, Path], None]) -> None:
    """Serve a sandbox until told to stop.

    Args:
        options: How it is filled and where it listens.
        stop: Set when it should end.
        announce: Is told the URL and the kubeconfig once it listens.

    Raises:
        PolicyschedError: a file cannot be loaded or the port is taken.
    """
    made = new_sandbox()
    documents = await unless(stop, asyncio.to_thread(load, options.files))
    if documents is None:
        return
    nodes = options.nodes if options.nodes is not None else (0 if options.files else DEFAULT_NODES)
    made.load(sandbox_nodes(nodes))
    fill(made, documents)
    await start(made, options.port)
    try:
        with written_kubeconfig(made.kubeconfig(), options.kubeconfig) as path:
            announce(made.url, path)
            await stop.wait()
    finally:
        await made.stop()


async def start(sandbox: Sandbox, port: int = 0) -> None:
    """Let a sandbox listen.

    Raises:
        PolicyschedError: the port cannot be had.
    """
    try:
        await sandbox.start(port)
    except (OSError, OverflowError) as error:
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "is in use" if taken else f"cannot be had: {error}"
        raise PolicyschedError(f"port {port} {why}; --port 0 takes a free one") from error


@contextmanager
def written_kubeconfig(content: dict[str, Any], path: Path | None = None) -> Iterator[Path]:
    """Write a kubeconfig, into a folder that goes away again where no path is given.

    Raises:
        UsageError: it cannot be written.
    """
    with TemporaryDirectory(prefix="policysched-") if path is None else nullcontext() as folder:
        path = path or Path(folder or "") / "kubeconfig"
        try:
            path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
            path.chmod(0o600)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}") from error
        yield path
