"""The nodes that policies are checked against, from files or from the cluster of a kubeconfig.

Only nodes are read: whether a label is on any of them needs no pods, and a cluster's pods may be many and not for
everybody to see.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from policysched.app.files.clusters import load_cluster
from policysched.errors import UsageError
from policysched.framework import Cluster
from policysched.model.decode import ObjectError, decode_node
from policysched.model.defaults import fill_node

LIVE: Final = "live"
Object = dict[str, Any]


async def read_nodes(names: Sequence[str], kubeconfig: Path | None = None, context: str | None = None) -> Cluster:
    """Read the nodes of files, folders and, for `live`, of the cluster of the kubeconfig.

    Raises:
        PolicyschedError: one of them cannot be used, or there is no node in them.
    """
    documents = [one for one in load_cluster(one for one in names if one != LIVE) if one.object["kind"] == "Node"]
    cluster = nodes_of(await _live(kubeconfig, context) if LIVE in names else ())
    for document in documents:
        try:
            cluster.set_node(decode_node(fill_node(document.object)))
        except ObjectError as error:
            raise document.refusal(error.field, error) from error
    if not cluster.nodes.count:
        raise UsageError(
            f"no Node in {', '.join(names)}: --cluster takes nodes, as `kubectl get nodes -o json` prints them"
        )
    return cluster


def nodes_of(nodes: Iterable[Object]) -> Cluster:
    """Make a cluster of nodes.

    Raises:
        ObjectError: one is malformed.
    """
    cluster = Cluster()
    for one in nodes:
        cluster.set_node(decode_node(fill_node(one)))
    return cluster


async def _live(kubeconfig: Path | None, context: str | None) -> list[Object]:
    from policysched.app.dry_run.live import NODES, read_cluster  # noqa: PLC0415 - files need no client of Kubernetes

    return await read_cluster(kubeconfig, context, kinds=NODES)
