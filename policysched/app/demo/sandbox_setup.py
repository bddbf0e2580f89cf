"""Set up a sandbox: install the CustomResourceDefinition of SchedulingPolicy, load files, write a kubeconfig.

The module connects clock, randomness and files with the in-memory API server. It does not schedule.
"""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from policysched.apimachinery.errors import StatusError
from policysched.app.checking.schema import policy_definition
from policysched.app.clock import SystemClock
from policysched.app.daemon_threads import unless
from policysched.errors import PolicyschedError, UsageError
from policysched.model.policy import API_GROUP, PLURAL
from policysched.model.release_choice import AUTO, release_named
from policysched.reading.documents import Document
from policysched.reading.loading import load
from policysched.sandbox import Sandbox, load_rank, sandbox_nodes

DEFAULT_NODES: Final = 3


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """The content and the address of a sandbox."""

    files: tuple[str, ...] = ()
    nodes: int | None = None
    """Number of nodes to create; None creates 3 nodes, or none if files are loaded."""
    port: int = 0
    """TCP port; 0 selects a free port."""
    kubeconfig: Path | None = None
    """File for the kubeconfig; None writes it into a temporary folder."""
    kube_version: str = AUTO
    """The Kubernetes minor that the server reports; `auto` selects the default minor."""


def new_sandbox(*, kubelet_seconds: float | None = 0.05, kube_version: str = AUTO) -> Sandbox:
    """Return a sandbox with the CustomResourceDefinition of SchedulingPolicy; it is not started."""
    now = SystemClock().now
    # Microseconds grow faster than a sandbox writes, so the versions of an earlier sandbox are smaller.
    first_version = int(now().timestamp() * 1_000_000)
    made = Sandbox(
        now,
        random.SystemRandom(),
        first_version=first_version,
        kubelet_seconds=kubelet_seconds,
        kubernetes=release_named(kube_version).version,
    )
    made.load([dict(policy_definition())])
    return made


def fill(sandbox: Sandbox, documents: Sequence[Document]) -> None:
    """Load objects of files into a sandbox, dependencies first.

    Raises:
        UsageError: an object is rejected; the text has its file and line.
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
    """Serve a sandbox until `stop` is set.

    Args:
        options: The content and the address.
        stop: Ends the sandbox when set.
        announce: Called with the URL and the kubeconfig when the sandbox listens.

    Raises:
        PolicyschedError: the minor is unknown, a file cannot be loaded, or the port is in use.
    """
    made = new_sandbox(kube_version=options.kube_version)
    documents = await unless(stop, asyncio.to_thread(load, options.files))
    if documents is None:
        return
    nodes = options.nodes if options.nodes is not None else (0 if options.files else DEFAULT_NODES)
    made.load(sandbox_nodes(nodes, made.kubernetes))
    fill(made, documents)
    await start(made, options.port)
    try:
        with written_kubeconfig(made.kubeconfig(), options.kubeconfig) as path:
            announce(made.url, path)
            await stop.wait()
    finally:
        await made.stop()


async def start(sandbox: Sandbox, port: int = 0) -> None:
    """Start a sandbox.

    Raises:
        PolicyschedError: the port cannot be used.
    """
    try:
        await sandbox.start(port)
    except (OSError, OverflowError) as error:
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "is in use" if taken else f"cannot be used: {error}"
        raise PolicyschedError(f"port {port} {why}; --port 0 selects a free port") from error


@contextmanager
def written_kubeconfig(content: dict[str, Any], path: Path | None = None) -> Iterator[Path]:
    """Write a kubeconfig; without a path, into a temporary folder that is deleted at the end.

    Raises:
        UsageError: the file cannot be written.
    """
    with TemporaryDirectory(prefix="policysched-") if path is None else nullcontext() as folder:
        path = path or Path(folder or "") / "kubeconfig"
        try:
            path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
            path.chmod(0o600)
        except OSError as error:
            raise UsageError(f"{path}: cannot write: {(error.strerror or str(error)).lower()}") from error
        yield path
