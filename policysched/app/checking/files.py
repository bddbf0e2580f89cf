"""Checks of policy files, against nodes from files or from a kubeconfig's cluster.

An unreadable file is reported and does not prevent checks of other files. Of a live cluster, only nodes are read: pods
are not needed to know labels, and can be many or forbidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from policysched.app.checking.check import check_documents, repeated_policies
from policysched.app.checking.findings import Finding
from policysched.app.checking.schema import is_meant
from policysched.app.checking.selectors import KINDS, has_selectors, selector_findings
from policysched.errors import UsageError
from policysched.model.decode import ObjectError, decode_node
from policysched.model.policy import KIND
from policysched.reading.documents import Document, read
from policysched.reading.files import as_text, read_bytes, shown
from policysched.reading.loading import IgnoredFiles

if TYPE_CHECKING:
    from policysched.framework import Cluster


@dataclass(slots=True)
class CheckedPolicies:
    """The policies found in files, and the findings about them."""

    policies: int = 0
    selecting: int = 0
    """Number of device classes, claims and claim templates in the files."""
    findings: list[Finding] = field(default_factory=list)
    problems: list[UsageError] = field(default_factory=list)
    """Unreadable files, and policies with equal names in a folder."""
    documents: list[Document] = field(default_factory=list)
    """The policies."""
    ignored: IgnoredFiles = field(default_factory=IgnoredFiles)
    """Skipped files and subfolders."""

    @property
    def errors(self) -> int:
        """Number of errors."""
        return sum(one.is_error for one in self.findings)

    @property
    def warnings(self) -> int:
        """Number of warnings."""
        return len(self.findings) - self.errors


def check_files(names: Iterable[str], cluster: Cluster | None = None, *, lenient: bool = False) -> CheckedPolicies:
    """Check the policies in files, in folders and on standard input (`-`).

    Args:
        names: Files, folders and `-`.
        cluster: The nodes for the policies; without it, labels that no node has are not reported.
        lenient: Whether to skip files without a policy, whatever they contain.
    """
    made = CheckedPolicies()
    for name in names:
        try:
            files = made.ignored.expand(name)
        except UsageError as error:
            made.problems.append(error)
            continue
        for file in files:
            _check(file, cluster, made, lenient=lenient, is_named=file == name)
    # Policies of one name in several folders can be for several clusters.
    made.problems += repeated_policies(made.documents, lambda one: Path(one.file).parent)
    return made


def _check(file: str, cluster: Cluster | None, made: CheckedPolicies, *, lenient: bool, is_named: bool) -> None:
    policies: list[Document] = []
    selecting: list[Document] = []
    try:
        data = read_bytes(file)
        if not lenient or any(kind.encode() in data for kind in (KIND, *KINDS)):
            documents = _read(data, file) if is_named else made.ignored.read(file, lambda _: _read(data, file))
            policies = [one for one in documents if is_meant(one.object)]
            selecting = [one for one in documents if has_selectors(one.object)]
    except UsageError as error:
        made.problems.append(error)
        return
    made.policies += len(policies)
    made.documents += policies
    made.findings += check_documents(policies, cluster)
    made.selecting += len(selecting)
    made.findings += [found for one in selecting for found in selector_findings(one)]


def _read(data: bytes, file: str) -> list[Document]:
    return read(as_text(data, shown(file)), shown(file))


LIVE: Final = "live"
Object = dict[str, Any]


async def read_nodes(
    names: Sequence[str],
    kubeconfig: Path | None = None,
    context: str | None = None,
    pods: list[Mapping[str, Any]] | None = None,
    notes: list[str] | None = None,
) -> Cluster:
    """Read nodes from files, from folders and, for `live`, from the kubeconfig's cluster.

    Args:
        names: Files, folders and `live`.
        kubeconfig: The kubeconfig of the live cluster.
        context: The context of the kubeconfig.
        pods: Receives the pods of the files and folders.
        notes: Receives notes about ignored files and misspelt fields.

    Raises:
        PolicyschedError: a source cannot be used, or has no nodes.
    """
    from policysched.app.checking.cluster_fields import cluster_warnings  # noqa: PLC0415 - most checks are made without nodes
    from policysched.app.files.saved_clusters import load_cluster, refuse_twins  # noqa: PLC0415 - as above

    files = [one for one in names if one != LIVE]
    loaded = load_cluster(files, notes)
    documents = [one for one in loaded if one.object["kind"] == "Node"]
    if pods is not None:
        pods += [one.object for one in loaded if one.object["kind"] == "Pod"]
    refuse_twins(documents)
    cluster = nodes_of(await _live(kubeconfig, context) if LIVE in names else ())
    for document in documents:
        try:
            _set_node(cluster, document.object)
        except ObjectError as error:
            raise document.refusal(error.field, error) from error
    if not cluster.nodes.count:
        raise UsageError(
            f"no Node in {', '.join(names)}; --cluster needs nodes, such as the output of `kubectl get nodes -o json`"
        )
    if notes is not None:
        notes += cluster_warnings(files)
    return cluster


def nodes_of(nodes: Iterable[Object]) -> Cluster:
    """Return a cluster with these nodes.

    Raises:
        ObjectError: a node is malformed.
    """
    from policysched.framework import Cluster  # noqa: PLC0415 - numpy is not needed without nodes

    cluster = Cluster()
    for one in nodes:
        _set_node(cluster, one)
    return cluster


def _set_node(cluster: Cluster, node: Mapping[str, Any]) -> None:
    from policysched.model.defaults import fill_node  # noqa: PLC0415 - as above

    cluster.set_node(decode_node(fill_node(node)))


async def _live(kubeconfig: Path | None, context: str | None) -> list[Object]:
    from policysched.app.dry_run.live_cluster import read_cluster  # noqa: PLC0415 - files need no client of Kubernetes
    from policysched.model.kinds import NODES  # noqa: PLC0415 - as above

    return await read_cluster(kubeconfig, context, kinds=(NODES,))
