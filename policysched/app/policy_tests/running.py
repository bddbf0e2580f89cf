"""Execution of policy tests: builds the cluster of each test, schedules its pods, compares the results.

`policysched.dry_run`, with the engine of the running scheduler, decides about every pod. Between steps the cluster
changes as with a scheduler: a placed pod is on its node, preemption victims are removed, and the preemptor is
nominated. No clock is read and seeds are fixed, so runs are repeatable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from policysched.apimachinery.patches import merge_patch
from policysched.app.checking.check import findings
from policysched.app.checking.findings import Finding, policy_key
from policysched.app.dry_run.dry_run import dry_run
from policysched.app.dry_run.group import dry_run_group
from policysched.app.dry_run.policies import compiles
from policysched.app.dry_run.results import GroupReport, Report
from policysched.app.files.group_members import all_members
from policysched.app.policy_tests.claims import claims_of, merged, release
from policysched.app.policy_tests.coverage import CoverageObserver
from policysched.app.policy_tests.differences import Difference, KnownNames, RecordComparison
from policysched.app.policy_tests.file_format import (
    PolicyEdit,
    PolicyTest,
    PolicyTestStep,
    Removal,
    ShortGroup,
    ShortPod,
)
from policysched.app.policy_tests.groups import GroupComparison, decided_members, group_object, group_pods
from policysched.app.policy_tests.objects import Object, cluster_objects, file_objects, key_of, pod_object
from policysched.app.policy_tests.reading import PolicyTestSource
from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry
from policysched.language import Environment
from policysched.language.checking.compile import compile_expression
from policysched.language.ir.types import DURATION
from policysched.language.messages.suggestions import did_you_mean
from policysched.model.policy import KIND
from policysched.model.release_choice import AUTO
from policysched.reading.documents import Document
from policysched.reading.loading import load
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.schedule.cycle.decision import Decision

POLICY: Final = "policy.yaml"
CLUSTER: Final = "cluster.yaml"
START: Final = "2026-01-01T00:00:00+00:00"
"""Time of the decisions of a test that states no time."""


class BrokenPolicyError(UsageError):
    """A tested policy does not compile; the text has the first error and its position.

    Args:
        errors: all errors of the policy.
    """

    def __init__(self, errors: Sequence[Finding]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        place, wrong = first.place(), first.diagnostic
        where = f"{first.document.file}:{place.line}:{place.column}: " if first.document and place else ""
        super().__init__(f"{where}{wrong.code}: {wrong.message}")


@dataclass(frozen=True, slots=True)
class PolicyTestResult:
    """The result of one test."""

    file: str
    given: str
    line: int
    column: int
    differences: tuple[Difference, ...] = ()
    problem: str = ""
    """Reason why the test could not run, otherwise empty."""
    records: tuple[Mapping[str, Any], ...] = ()
    """The decision record of each step with a pod."""

    @property
    def passed(self) -> bool:
        """Whether the test met its expectations."""
        return not self.differences and not self.problem

    @property
    def outcome(self) -> str:
        """`passed`, `failed`, or `error` if the test could not run."""
        return "error" if self.problem else "passed" if self.passed else "failed"

    @property
    def name(self) -> str:
        """Name by which the test is selected and reported."""
        return f"{self.file}: {self.given}"

    def told(self) -> list[str]:
        """Return the problem of the test, or its differences, one per line; empty if the test passed."""
        return [self.problem] if self.problem else [line for found in self.differences for line in found.lines()]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        said: dict[str, Any] = {"file": self.file, "line": self.line, "column": self.column, "given": self.given}
        said["result"] = self.outcome
        if self.problem:
            said["problem"] = self.problem
        if self.differences:
            said["differences"] = [
                {
                    "field": one.field, "what": one.what, "expected": one.expected, "got": one.got,
                    "reasons": [*one.reasons],
                }
                for one in self.differences
            ]  # fmt: skip
        return said


@dataclass(frozen=True, slots=True)
class LoadedTest:
    """A policy test with the objects of its initial cluster."""

    source: PolicyTestSource
    path: str
    written: PolicyTest
    objects: tuple[Object, ...]
    policies: tuple[Document, ...]
    config: Document | None

    @property
    def name(self) -> str:
        """Name by which the test is selected and reported."""
        return f"{self.source.name}: {self.written.given}"


def load_tests(source: PolicyTestSource) -> list[LoadedTest]:
    """Load the objects and policies of a file's tests.

    Raises:
        UsageError: a file cannot be read.
        BrokenPolicyError: a policy does not compile.
    """
    written, folder = source.written, source.folder
    clusters: dict[str, tuple[Object, ...]] = {}
    policies: dict[tuple[str, ...], tuple[Document, ...]] = {}
    config = _config(source)
    made = []
    default_policies = [POLICY] if written.policies is None and (folder / POLICY).exists() else written.policies or []
    default_cluster = CLUSTER if written.cluster is None and (folder / CLUSTER).exists() else written.cluster
    for index, test in enumerate(written.tests):
        path = source.path_of(index)
        own = test.cluster is not None
        place = f"{path}.cluster" if own else "cluster"
        if place not in clusters:
            clusters[place] = tuple(cluster_objects(source, test.cluster if own else default_cluster, place))
        names = tuple(default_policies if test.policies is None else test.policies)
        if names not in policies:
            policies[names] = _policies(source, names, f"{path}.policies" if test.policies is not None else "policies")
        made.append(LoadedTest(source, path, test, clusters[place], policies[names], config))
    return made


def _config(source: PolicyTestSource) -> Document | None:
    name = source.written.config
    if name is None:
        return None
    file_objects(source, name, "config")
    [document, *others] = load([str(source.folder / name)])
    if others:
        raise UsageError(f"{others[0].where}: expected one KubeSchedulerConfiguration, got several objects")
    return document


def _policies(source: PolicyTestSource, names: Iterable[str], path: str) -> tuple[Document, ...]:
    """Load the policies under test from files; raise an error for a policy that does not compile."""
    found: list[Document] = []
    for index, name in enumerate(names):
        file_objects(source, name, f"{path}[{index}]")
        found += [one for one in load([str(source.folder / name)]) if one.object["kind"] == KIND]
    errors = [finding for one in found for finding in findings(one.object, one) if finding.is_error]
    if errors:
        raise BrokenPolicyError(errors)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PolicyTestOptions:
    """Options of a test run."""

    plugins: PluginRegistry | None = None
    """Plugins that a configuration can enable."""
    kube_version: str = AUTO
    """The Kubernetes minor whose kube-scheduler decides."""
    coverage: CoverageObserver | None = None
    """Observer of the decisions, for coverage."""


def run_test(
    test: LoadedTest, options: PolicyTestOptions, policies: Sequence[Object] | None = None
) -> PolicyTestResult:
    """Run a test.

    Args:
        test: The test.
        options: Options of the run.
        policies: Policies that replace those of the test's files.
    """
    place = test.source.place(test.path) or (0, 0)
    result = PolicyTestResult(test.source.name, test.written.given, *place)
    records: list[Mapping[str, Any]] = []
    try:
        found = [*_Running(test, options, policies, records).all()]
    except UsageError as error:
        return replace(result, problem=str(error), records=tuple(records))
    return replace(result, differences=tuple(found), records=tuple(records))


class _Running:
    """Runs one test, and keeps the test's cluster from step to step."""

    def __init__(
        self,
        test: LoadedTest,
        options: PolicyTestOptions,
        policies: Sequence[Object] | None,
        records: list[Mapping[str, Any]],
    ) -> None:
        written, defaults = test.written, test.source.written
        self._test, self._options, self._records = test, options, records
        self._objects = {key_of(one): one for one in test.objects if one["kind"] != KIND}
        given = [one.object for one in test.policies] if policies is None else policies
        standing = [one for one in test.objects if one["kind"] == KIND]
        self._policies = {policy_key(one): one for one in (*standing, *given)}
        self._now = _time(test, written.now or defaults.now or START)
        self._metrics = written.metrics if written.metrics is not None else defaults.metrics
        self._seed = defaults.seed if written.seed is None else written.seed
        self._claims: list[Object] = []
        """Claims of the pods of the last decision, as allocated on their nodes."""

    def all(self) -> Iterator[Difference]:
        """Run the steps of the test and yield the differences from the expectations."""
        test = self._test.written
        steps = test.steps or [PolicyTestStep(pod=test.pod, group=test.group, expect=test.expect)]
        for index, step in enumerate(steps):
            path = f"{self._test.path}.steps[{index}]" if test.steps else self._test.path
            self._change(step, path)
            if step.pod is None and step.group is None and step.again is None and step.expect is None:
                continue
            name = f"new-{index + 1}" if test.steps else "new"
            decided = (
                self._decide(step, path, name, index) if step.group is None else self._decide_group(step, path, index)
            )
            for found in decided:
                yield replace(found, what=f"step {index + 1}: {found.what}") if test.steps else found

    def _decide(self, step: PolicyTestStep, path: str, name: str, index: int) -> Iterator[Difference]:
        if step.again is not None:
            pod = self._waiting(step.again, f"{path}.again")
        else:
            pod = pod_object(self._test.source, step.pod or ShortPod(), f"{path}.pod", name)
        self._claims = []
        report = self._report(pod, index)
        if report.admission_notes:
            raise self._test.source.refusal(f"{path}.pod", report.admission_notes[0])
        record = report.to_dict()
        self._records.append(record)
        if step.expect is not None:
            names = self._names(pod)
            refuse = self._test.source.refusal
            yield from RecordComparison(record, step.expect, names, refuse, f"{path}.expect").all()
        self._leave(pod, record)

    def _decide_group(self, step: PolicyTestStep, path: str, index: int) -> Iterator[Difference]:
        short = step.group or ShortGroup()
        group = group_object(short)
        self._objects[key_of(group)] = group
        new = group_pods(self._test.source, short, f"{path}.group")
        pods = new or self._waiting_members(f"{short.namespace}/{short.name}", f"{path}.group")
        names = self._names(*pods)
        self._claims = []
        record = self._group_report(pods, index).to_dict()
        self._records.append(record)
        self._leave_group(pods, record)
        if step.expect is not None:
            refuse = self._test.source.refusal
            yield from GroupComparison(record, step.expect, names, refuse, f"{path}.expect", self._objects).all()

    def _waiting_members(self, group: str, path: str) -> list[Object]:
        """Return the pending pods of a group."""
        waiting = [pod for pod in all_members(self._objects.values(), group) if not _node_of(pod)]
        if not waiting:
            raise self._test.source.refusal(path, f"group has no `pods`, and no pod of {group} is pending")
        return waiting

    def _group_report(self, pods: Sequence[Object], index: int) -> GroupReport:
        coverage = self._options.coverage
        return dry_run_group(
            self._objects.values(), pods, self._policies.values(),
            config=self._test.config, now=self._now, seed=self._seed + index, metrics=_given(self._metrics),
            plugins=self._options.plugins, observe=self._observe,
            observe_placements=None if coverage is None else coverage.observe_placements,
            kube_version=self._options.kube_version,
        )  # fmt: skip

    def _leave_group(self, pods: Iterable[Object], record: Mapping[str, Any]) -> None:
        """Update the cluster after the decision about a group: place the group's members, or nominate the members."""
        self._objects |= {key_of(pod): pod for pod in pods}
        self._objects |= decided_members(self._objects, record)
        if record["result"] == "Scheduled":
            self._objects |= merged(self._claims)
        for victim in record.get("victims", ()):
            self._end_pod(*victim.split("/", 1))

    def _report(self, pod: Object, index: int) -> Report:
        return dry_run(
            self._objects.values(), pod, self._policies.values(),
            config=self._test.config, now=self._now, seed=self._seed + index, metrics=_given(self._metrics),
            plugins=self._options.plugins, observe=self._observe, kube_version=self._options.kube_version,
        )  # fmt: skip

    def _observe(self, decision: Decision, policies: Sequence[ActivePolicy]) -> None:
        self._claims += claims_of(decision)
        if self._options.coverage is not None:
            self._options.coverage.observe(decision, policies)

    def _leave(self, pod: dict[str, Any], record: Mapping[str, Any]) -> None:
        """Update the cluster after a step: add the pod, placed or pending, and remove victims of preemption."""
        spec, status = dict(pod["spec"]), dict(pod.get("status") or {})
        if "selected" in record:
            spec["nodeName"] = record["selected"]
            status = {"phase": "Running"}
            self._objects |= {key_of(claim): claim for claim in self._claims}
        elif "nominated" in record:
            status["nominatedNodeName"] = record["nominated"]["node"]
            for victim in record["nominated"]["victims"]:
                self._end_pod(*victim.split("/", 1))
        placed = {**pod, "spec": spec, "status": status}
        self._objects[key_of(placed)] = placed

    def _waiting(self, name: str, path: str) -> dict[str, Any]:
        namespace, _, own = name.rpartition("/")
        pod = self._objects.get(("Pod", namespace or "default", own))
        waiting = [f"{key[1]}/{key[2]}" for key, one in self._objects.items() if key[0] == "Pod" and not _node_of(one)]
        if pod is None or _node_of(pod):
            meant = did_you_mean(name, waiting)
            raise self._test.source.refusal(path, f"no pending pod `{name}`" + (f"; {meant}" if meant else ""))
        return dict(pod)

    def _change(self, step: PolicyTestStep, path: str) -> None:
        """Apply the changes of a step, in the order in which its fields are documented."""
        if step.wait is not None:
            self._now += _duration(self._test.source, step.wait, f"{path}.wait")
        if step.metrics is not None:
            self._metrics = step.metrics
        if step.remove is not None:
            self._remove(step.remove, f"{path}.remove")
        if step.add is not None:
            for one in cluster_objects(self._test.source, step.add, f"{path}.add"):
                self._objects[key_of(one)] = one
        if step.edit is not None:
            self._edit(step.edit, f"{path}.edit")

    def _remove(self, removal: Removal, path: str) -> None:
        for index, name in enumerate(removal.nodes):
            self._take_away(("Node", "", name), f"{path}.nodes[{index}]")
            for key in [key for key, one in self._objects.items() if key[0] == "Pod" and _node_of(one) == name]:
                self._end_pod(*key[1:])
        for index, name in enumerate(removal.pods):
            namespace, _, own = name.rpartition("/")
            self._take_away(("Pod", namespace or "default", own), f"{path}.pods[{index}]")
            self._end_pod(namespace or "default", own)

    def _end_pod(self, namespace: str, name: str) -> None:
        self._objects.pop(("Pod", namespace, name), None)
        release(self._objects, namespace, name)

    def _take_away(self, key: tuple[str, str, str], path: str) -> None:
        if key not in self._objects:
            meant = did_you_mean(key[2], [one[2] for one in self._objects if one[0] == key[0]])
            kind = key[0].lower()
            raise self._test.source.refusal(path, f"no {kind} `{key[2]}`" + (f"; {meant}" if meant else ""))
        del self._objects[key]

    def _edit(self, edit: PolicyEdit, path: str) -> None:
        """Edit a policy; an edit that does not compile has no effect, as in a cluster."""
        key = next((one for one in self._policies if one == edit.policy), None)
        if key is None:
            meant = did_you_mean(edit.policy, self._policies)
            raise self._test.source.refusal(
                f"{path}.policy", f"no policy `{edit.policy}`" + (f"; {meant}" if meant else "")
            )
        if edit.delete:
            del self._policies[key]
            return
        policy = self._policies[key]
        changed = {**policy, "spec": merge_patch(policy.get("spec") or {}, edit.spec)}
        if compiles(changed):
            self._policies[key] = changed

    def _names(self, *pods: Object) -> KnownNames:
        keys = [*self._objects, *map(key_of, pods)]
        written = [one.object for one in self._test.policies]
        rules = {
            part: dict.fromkeys(
                f"{policy_key(one)}/{rule['name']}"
                for one in (*written, *self._policies.values())
                for rule in (one.get("spec") or {}).get(part) or ()
            )
            for part in ("filters", "scores")
        }
        return KnownNames(
            sorted(name for kind, _, name in keys if kind == "Node"),
            sorted({f"{namespace}/{name}" for kind, namespace, name in keys if kind == "Pod"}),
            sorted(self._policies),
            sorted(rules["filters"]),
            sorted(rules["scores"]),
        )


def _node_of(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _given(metrics: Mapping[str, Mapping[str, float | None]] | None) -> dict[str, dict[str, float]] | None:
    """Return the given metrics, without the nodes that a test gives no value."""
    if metrics is None:
        return None
    return {
        name: {node: value for node, value in of_node.items() if value is not None} for name, of_node in metrics.items()
    }


def _time(test: LoadedTest, text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        path = f"{test.path}.now" if test.written.now else "now"
        raise test.source.refusal(path, f'expected a time such as 2026-01-05T23:00:00Z, got "{text:.40}"') from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _duration(source: PolicyTestSource, text: str, path: str) -> timedelta:
    """Parse a duration in the language's syntax."""
    program = compile_expression(text, Environment()).program
    if program is None or not program.type.like(DURATION) or not isinstance(program.constant, float):
        raise source.refusal(path, f'expected a duration such as 30s, 5min or 2h, got "{text:.40}"')
    return timedelta(seconds=program.constant)
