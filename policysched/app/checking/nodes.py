"""Read the nodes and namespaces that policies are checked against, from files or a live cluster.

Pods of a live cluster are not read: they can be many, and reading them needs more rights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from policysched.app.checking.check import FindAbsent, findings
from policysched.app.checking.cluster_fields import cluster_warnings
from policysched.app.checking.findings import Finding
from policysched.app.files.saved_clusters import load_cluster, refuse_twins
from policysched.errors import ConnectionProblemError, UsageError
from policysched.framework import Cluster
from policysched.model.decode import ObjectError
from policysched.model.defaults import PriorityClasses
from policysched.model.kinds import NAMESPACES, NODES, POD_GROUPS, ApiKind, fill
from policysched.model.release import DEFAULT, Release, with_pod_groups
from policysched.reading.documents import Document
from policysched.rules.policy_status.input_presence import absent

LIVE: Final = "live"
GROUPED: Final = with_pod_groups(DEFAULT, by_topology=True) or DEFAULT
"""The default release with the feature gates for pod groups and topologies."""
_READ: Final[Mapping[str, ApiKind[Any]]] = {one.kind: one for one in (NODES, NAMESPACES)}
Object = dict[str, Any]


class CheckedCluster(NamedTuple):
    """The cluster that policies are checked against."""

    cluster: Cluster
    """The nodes and namespaces of the files and of the live cluster."""
    pods: Sequence[Mapping[str, Any]]
    """The pods of the files."""
    notes: Sequence[str]
    """Notes about ignored files, misspelt fields and a missing right to list namespaces."""


async def read_nodes(
    names: Sequence[str],
    kubeconfig: Path | None = None,
    context: str | None = None,
    release: Release | None = None,
) -> CheckedCluster:
    """Read the nodes and namespaces of files, folders and, for `live`, of the kubeconfig's cluster.

    Without stated feature gates, pods are scheduled by pod groups and topology, unless the live API server serves no
    pod groups.

    Args:
        names: Files, folders and `live`.
        kubeconfig: The kubeconfig of the live cluster.
        context: The context of the kubeconfig.
        release: The release with the feature gates that are stated.

    Raises:
        PolicyschedError: a file or the cluster is unusable, or there is no node.
    """
    files, live = [one for one in names if one != LIVE], LIVE in names
    notes: list[str] = []
    loaded = load_cluster(files, notes)
    documents = [one for one in loaded if one.object["kind"] in _READ]
    refuse_twins(documents)
    if release is None:
        release = await _release(kubeconfig, context) if live else GROUPED
    cluster = nodes_of(await _live(kubeconfig, context, notes) if live else (), release)
    for document in documents:
        try:
            _take(cluster, document.object)
        except ObjectError as error:
            raise document.refusal(error.field, error) from error
    if not cluster.nodes.count:
        raise UsageError(
            f"no Node in {', '.join(names)}; --cluster needs nodes, such as the output of `kubectl get nodes -o json`"
        )
    pods = [one.object for one in loaded if one.object["kind"] == "Pod"]
    return CheckedCluster(cluster, pods, (*notes, *cluster_warnings(files)))


def nodes_of(nodes: Iterable[Object], release: Release = DEFAULT) -> Cluster:
    """Return a cluster with the given nodes and the rules of a Kubernetes release.

    Raises:
        ObjectError: a node is malformed.
    """
    cluster = Cluster(release=release)
    for one in nodes:
        _take(cluster, one)
    return cluster


def _take(cluster: Cluster, raw: Mapping[str, Any]) -> None:
    """Add a node or namespace to a cluster.

    Raises:
        ObjectError: the object is malformed.
    """
    cluster.take(_READ[raw["kind"]].decode(fill(raw, PriorityClasses())))


async def _live(kubeconfig: Path | None, context: str | None, notes: list[str]) -> list[Object]:
    """List the nodes of a live cluster and, if the API server permits it, the namespaces."""
    from policysched.app.dry_run.live_cluster import read_cluster  # noqa: PLC0415 - aiohttp takes 200 ms

    nodes = await read_cluster(kubeconfig, context, kinds=(NODES,))
    try:
        return nodes + await read_cluster(kubeconfig, context, kinds=(NAMESPACES,))
    except ConnectionProblemError as error:
        notes.append(f"labels of namespaces are not checked: {error}")
        return nodes


async def _release(kubeconfig: Path | None, context: str | None) -> Release:
    from policysched.app.dry_run.live_cluster import serves  # noqa: PLC0415 - as above

    return GROUPED if await serves(POD_GROUPS, kubeconfig, context) else DEFAULT


def absent_on(cluster: Cluster) -> FindAbsent:
    """Return a function that warns about labels, resources and values if no node or namespace of a cluster has them."""
    return partial(absent, cluster=cluster)


def absent_findings(policies: Iterable[Document], objects: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """Return warnings about labels, resources and values in policies if no node or namespace among objects has them.

    Unreadable objects are ignored.
    """
    cluster = nodes_of((), GROUPED)
    for one in objects:
        if one["kind"] in _READ:
            with suppress(ObjectError):
                _take(cluster, one)
    find_absent = absent_on(cluster)
    found: list[Finding] = []
    for document in policies:
        known = {one.diagnostic for one in findings(document.object, document)}
        found += [one for one in findings(document.object, document, find_absent) if one.diagnostic not in known]
    return found
