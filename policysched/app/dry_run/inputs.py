"""Reading of a dry-run's inputs from the command line: pod, cluster, policies, metrics; errors have file and line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from policysched.app.checking.check import findings, repeated_policies
from policysched.app.checking.cluster_fields import cluster_warnings
from policysched.app.checking.findings import Finding, policy_key
from policysched.app.checking.pod_faults import refuse_pod_faults
from policysched.app.dry_run.dry_run import dry_run
from policysched.app.dry_run.group import dry_run_group
from policysched.app.dry_run.metrics import Measure
from policysched.app.dry_run.policies import compiles, edit_note, in_force, last_good_notes
from policysched.app.dry_run.results import GroupReport, Report
from policysched.app.files.group_members import all_pods, group_named_by, is_group, pods_to_place
from policysched.app.files.saved_clusters import NO_NODES, identity, load_cluster, refuse_twins
from policysched.app.files.workload_pods import TEMPLATES, PodToPlace, chosen, controlled
from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry
from policysched.model.decode import ObjectError
from policysched.model.kinds import KINDS
from policysched.model.policy import KIND, PolicyKey
from policysched.model.release_choice import AUTO, release_named, release_of_server
from policysched.reading.documents import Document, Object
from policysched.reading.files import STDIN, exists, shown
from policysched.reading.folders import empty
from policysched.reading.loading import load, load_one
from policysched.rules.policy_set.not_applied import not_compiled

LIVE: Final = "live"
_APPLIED: Final = frozenset((*KINDS, "RuntimeClass", "LimitRange")) - {"Node", "Pod", KIND, *TEMPLATES}
"""Kinds, such as claims and classes, whose objects in the pod's file are added to the cluster."""


@dataclass(frozen=True, slots=True)
class ClusterSources:
    """The files and the live cluster from which a `ClusterInputs` is read."""

    cluster: Sequence[str] = (LIVE,)
    """Files and folders of objects; `live` is the kubeconfig's cluster."""
    policies: Sequence[str] = ()
    """Files and folders of policies to try."""
    config: str | None = None
    """File of a KubeSchedulerConfiguration."""
    kubeconfig: Path | None = None
    """The kubeconfig of the live cluster; None: the one that kubectl uses."""
    context: str | None = None
    """The context in the kubeconfig; None: the current context."""
    kube_version: str = AUTO
    """The Kubernetes minor whose kube-scheduler decides; `auto` is that of the live cluster."""


@dataclass(frozen=True, slots=True)
class ClusterInputs:
    """A cluster, with policies and a configuration to try."""

    objects: tuple[Object, ...]
    """Objects of the cluster."""
    documents: tuple[Document, ...]
    """Objects read from files, with their positions."""
    policies: tuple[Document, ...]
    """Policies to try."""
    config: Document | None
    left_out: tuple[ObjectError, ...] = ()
    """Unusable objects of a live cluster."""
    notes: tuple[str, ...] = ()
    """Notes about the files and the live cluster, one line each."""
    kube_version: str = AUTO
    """The Kubernetes minor whose kube-scheduler decides."""

    @property
    def all_notes(self) -> tuple[str, ...]:
        """All notes: `notes`, and notes about missing nodes and about policies whose last good generation decides."""
        has_nodes = any(one["kind"] == "Node" for one in self.objects)
        kept = last_good_notes(self.objects, (one.object for one in self.policies))
        return (*self.notes, *kept, *(() if has_nodes else (NO_NODES,)))

    def findings(self) -> list[Finding]:
        """Return findings about the policies that take part: unreplaced policies of the cluster, policies to try."""
        placed = {id(one.object): one for one in self.documents}
        found = [finding for one in self._standing() for finding in findings(one, placed.get(id(one)))]
        return found + [finding for one in self.policies for finding in findings(one.object, one)]

    def taking_part(self, found: Iterable[Finding]) -> TakingPart:
        """Return the objects that take part in the decision.

        Args:
            found: Findings of the check. A policy with errors does not take part, unless its annotation has the last
                good generation; if an edit has errors, the policy of the cluster stays in force.
        """
        errors = {one.policy: one.diagnostic for one in reversed([*found]) if one.is_error}
        others = [one for one in self.objects if one["kind"] != KIND]
        standing = [one for one in map(in_force, self._of_the_cluster()) if compiles(one)]
        tried = [one.object for one in self.policies if policy_key(one.object) not in errors]
        staying = {policy_key(one): one["metadata"].get("generation") for one in standing}
        replaced = {policy_key(one.object) for one in self.policies}
        failed = {name: not_compiled([one]) for name, one in errors.items() if name not in staying}
        edits = {name: not_compiled([one]) for name, one in errors.items() if name in staying and name in replaced}
        notes = [edit_note(name, why, staying[name]) for name, why in edits.items()]
        return TakingPart([*others, *standing], tried, failed, notes)

    def located(self, error: ObjectError) -> UsageError:
        """Add the position of the object in its file to an error about an object."""
        for document in self.documents:
            if document.object["kind"] == error.kind and _is(document.object, error):
                return document.refusal(error.field, error)
        return error

    def _standing(self) -> list[Object]:
        replaced = {policy_key(one.object) for one in self.policies}
        return [one for one in self._of_the_cluster() if policy_key(one) not in replaced]

    def _of_the_cluster(self) -> list[Object]:
        return [one for one in self.objects if one["kind"] == KIND]


@dataclass(frozen=True, slots=True)
class TakingPart:
    """The objects and policies that take part in a decision."""

    objects: Sequence[Object]
    """The objects of the cluster; policies have the specs that are in force."""
    policies: Sequence[Object]
    """The policies to try."""
    failed: Mapping[PolicyKey, str]
    """Policies that have no effect because of errors, with reasons."""
    notes: Sequence[str]
    """Notes about edited policies with errors, for which the version in the cluster decides."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """All inputs of a dry-run: the pod, the cluster, the policies, the configuration, plugins and metrics."""

    cluster: ClusterInputs
    wanted: PodToPlace
    others: tuple[PodToPlace, ...] = ()
    """Further pods to place, which name the same pod group."""
    metrics: Measure | None = None
    plugins: PluginRegistry | None = None
    """Plugins that a configuration can enable besides the default plugins; None: plugins of installed distributions."""
    node_templates: tuple[str, ...] = ()
    """Files of nodes that do not exist, on which the pod is evaluated, too."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the inputs, one line each."""
        made = [self.wanted.note] if not self.others else []
        if self.others and self.wanted.template:
            made = [f"{len(self.others) + 1} pods created from the templates in {self.wanted.document.file}"]
        return tuple(filter(None, (*made, *self.wanted.notes, *self.cluster.all_notes)))

    @property
    def group(self) -> str:
        """The pod group that the pods name, `namespace/name`; empty if the pods name no group."""
        return "/".join(group_named_by(self.wanted.object) or ())

    @property
    def has_group(self) -> bool:
        """Whether the pod group that the pods name is among the objects."""
        key = group_named_by(self.wanted.object)
        return key is not None and any(is_group(one, key) for one in self.cluster.objects)

    def findings(self) -> list[Finding]:
        """Return findings about the policies that take part in the decision."""
        return self.cluster.findings()

    def evaluate(self, found: Iterable[Finding], seed: int | None = None, now: datetime | None = None) -> Report:
        """Run the simulation and return the report.

        Args:
            found: Findings of the check.
            seed: Seed of the draw among equally good nodes.
            now: Time of the decision; default: the system's time.

        Raises:
            UsageError: an object is malformed; the text has its position.
        """
        part = self.cluster.taking_part(found)
        try:
            report = dry_run(
                part.objects, self.wanted.object, part.policies,
                config=self.cluster.config, now=now, seed=seed, metrics=self.metrics, plugins=self.plugins,
                kube_version=self.cluster.kube_version, node_templates=self.node_templates,
            )  # fmt: skip
        except ObjectError as error:
            raise self._located(error) from error
        report = replace(report, notes=(*report.notes, *part.notes))
        return report.with_not_applied(part.failed)

    def evaluate_group(
        self, found: Iterable[Finding], seed: int | None = None, now: datetime | None = None
    ) -> GroupReport:
        """Run the simulation of the pods' group; see `evaluate`.

        Raises:
            UsageError: an object is malformed; the text has its position.
        """
        if self.node_templates:
            raise UsageError("--node-template: node templates are not evaluated for pods of pod groups")
        part, pods = self.cluster.taking_part(found), [one.object for one in (self.wanted, *self.others)]
        try:
            report = dry_run_group(
                part.objects, pods, part.policies,
                config=self.cluster.config, now=now, seed=seed, metrics=self.metrics, plugins=self.plugins,
                kube_version=self.cluster.kube_version,
            )  # fmt: skip
        except ObjectError as error:
            raise self._located(error) from error
        report = replace(report, notes=(*report.notes, *part.notes))
        return report.with_not_applied(part.failed)

    def _located(self, error: ObjectError) -> UsageError:
        wanted = next((one for one in (self.wanted, *self.others) if _is(one.object, error)), None)
        if error.kind == "Pod" and wanted is not None:
            prefix = f"{wanted.template}." if wanted.template else ""
            return wanted.document.refusal(prefix + error.field, error)
        return self.cluster.located(error)


async def gather(sources: ClusterSources, pod: str) -> Inputs:
    """Read the inputs of a dry-run.

    Args:
        sources: The files and the live cluster.
        pod: The file of the pod.

    Raises:
        PolicyschedError: an input cannot be used.
    """
    file, choice = chosen(pod)
    if file != STDIN and not Path(file).suffix and not exists(Path(file)):
        raise UsageError(f"{file}: no such file; for a pod of the cluster, run `policysched why {file}`")
    notes: list[str] = []
    documents = load([file], notes)
    wanted = pods_to_place(documents, file, choice)
    for one in {id(one.document): one for one in wanted}.values():
        refuse_pod_faults(one.document, one.object, one.template)
    notes += cluster_warnings([file])
    found = await gather_cluster(sources)
    group = group_named_by(wanted[0].object)
    if any(is_group(one, group) for one in (*found.objects, *(document.object for document in documents))):
        wanted = [copy for one in wanted for copy in all_pods(one)]
    elif len(wanted) > 1:
        raise UsageError(f"{file}: pod group {'/'.join(group or ())} is neither in the file nor in the cluster")
    made, created = _made_by_controllers(wanted, found.objects)
    # Other objects of the file are applied with the pod, unless the cluster has them already.
    known = {identity(one) for one in found.objects} if len(documents) > 1 or created else set()
    with_pod = [one for one in documents if one.object["kind"] in _APPLIED and identity(one.object) not in known]
    beside = [one for one in created if identity(one) not in known]
    complete = replace(
        found,
        objects=(*beside, *(one.object for one in with_pod), *found.objects),
        documents=(*found.documents, *with_pod),
        notes=(*notes, *found.notes),
    )
    return Inputs(complete, made[0], tuple(made[1:]))


def _made_by_controllers(
    wanted: Iterable[PodToPlace], objects: Sequence[Object]
) -> tuple[list[PodToPlace], list[Object]]:
    """Return pods as their controllers create them, and the objects that controllers create together with the pods."""
    made, known = [], [*objects]
    beside: dict[object, Object] = {}
    for one in wanted:
        result = controlled(dict(one.document.object), dict(one.object), known)
        made.append(replace(one, object=result.pod))
        known.append(result.pod)
        beside |= {identity(other): other for other in result.beside}
    return made, list(beside.values())


async def gather_cluster(sources: ClusterSources) -> ClusterInputs:
    """Read a cluster, with the policies and the configuration to try.

    Raises:
        PolicyschedError: an input cannot be used.
    """
    release_named(sources.kube_version)  # an unknown minor is an error before anything is read
    notes: list[str] = []
    files = [one for one in sources.cluster if one != LIVE]
    documents = load_cluster(files, notes)
    refuse_twins(documents)
    notes += cluster_warnings(files)
    tried = load_policies(sources.policies, notes)
    for several in (documents, tried):
        for twin in repeated_policies(one for one in several if one.object["kind"] == KIND):
            raise twin
    config = None if sources.config is None else load_one(sources.config, "KubeSchedulerConfiguration")
    live = await _read_live(sources, notes) if LIVE in sources.cluster else _LiveCluster(sources.kube_version)
    objects = (*live.objects, *(one.object for one in documents))
    return ClusterInputs(
        objects, tuple(documents), tuple(tried), config, tuple(live.left_out), tuple(notes), live.kube_version
    )


class _LiveCluster(NamedTuple):
    """The objects of a live cluster, with the minor that decides and the objects that cannot be used."""

    kube_version: str
    objects: Sequence[Object] = ()
    left_out: Sequence[ObjectError] = ()


async def _read_live(sources: ClusterSources, notes: list[str]) -> _LiveCluster:
    """Read the objects of the live cluster; append notes about its version and about kinds that cannot be listed."""
    from policysched.app.dry_run.live_cluster import read_cluster  # noqa: PLC0415 - files need no Kubernetes client

    kube_version = sources.kube_version
    left_out: list[ObjectError] = []

    def use_version(version: str) -> None:
        nonlocal kube_version
        release, warning = release_of_server(version)
        kube_version = release.minor
        notes.extend([warning] if warning else [])

    objects = await read_cluster(
        sources.kubeconfig,
        sources.context,
        left_out=left_out.append,
        missing=notes.append,
        version=use_version if kube_version == AUTO else None,
    )
    return _LiveCluster(kube_version, objects, left_out)


def load_policies(names: Iterable[str], notes: list[str]) -> list[Document]:
    """Read policies from files and folders; ignore objects of other kinds.

    Args:
        names: Files and folders.
        notes: Receives notes about ignored objects.

    Raises:
        UsageError: a file cannot be read, or a file or folder has no policy.
    """
    found: list[Document] = []
    ignored: set[str] = set()
    for name in names:
        documents = load([name], notes)
        policies = [one for one in documents if one.object["kind"] == KIND]
        if not policies and documents[0].file == shown(name):
            raise UsageError(f"{documents[0].where}: expected a {KIND}, got a {documents[0].object['kind']}")
        if not policies:
            raise empty(name, f"no {KIND} in the folder")
        found += policies
        ignored |= {one.object["kind"] for one in documents} - {KIND}
    if ignored:
        notes.append(f"ignored objects of other kinds beside the policies: {', '.join(sorted(ignored))}")
    return found


def _is(found: Object, error: ObjectError) -> bool:
    metadata = found.get("metadata")
    if not isinstance(metadata, dict):
        return not error.key
    namespace, _, name = error.key.rpartition("/")
    same = namespace in ("", metadata.get("namespace") or "default")
    return same and str(metadata.get("name") or "") == name
