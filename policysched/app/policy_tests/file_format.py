"""The format of policy test files: structs that define the loader and the JSON schema for editors.

Unknown fields are errors, because a misspelt expectation could never fail. Omitted fields of an expectation are not
checked, except `rejected`, `protected` and `nominated`.

Source: docs/write/testing.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Amounts = dict[str, str | int | float]
Names = list[str]
Numbers = dict[str, float | None]
_Positive = Annotated[int, Meta(ge=1)]


class _Written(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel", omit_defaults=True):
    """Base of the structs that decode mappings in a test file; unknown fields are errors."""


class ShortNode(_Written, frozen=True):
    """A node, or `count` nodes, in short form."""

    name: Annotated[str, Meta(description="Name. With `count`, `*` is the number of the node, from 1.")]
    count: Annotated[int, Meta(ge=1, le=100_000, description="Number of such nodes.")] = 1
    labels: Annotated[dict[str, str], Meta(description="Labels; `*` in a value is the number of the node.")] = {}
    annotations: dict[str, str] = {}
    taints: Annotated[Names, Meta(description="Taints as `key=value:Effect` or `key:Effect`.")] = []
    allocatable: Annotated[Amounts, Meta(description="Allocatable quantities; default 4 cores, 16 Gi, 110 pods.")] = {}
    images: Annotated[Amounts, Meta(description="Sizes of images on the node, by image.")] = {}
    ready: bool = True
    conditions: Annotated[dict[str, str], Meta(description="Status of conditions by type, as `DiskPressure`.")] = {}
    cordoned: bool = False
    created: Annotated[str | None, Meta(description="When it was created, as 2026-01-01T00:00:00Z.")] = None


class ShortPod(_Written, frozen=True):
    """A pod in the short form of test files: name, labels, requests and other often used fields."""

    file: Annotated[str | None, Meta(description="File with the pod or a workload, relative to the tests.")] = None
    name: Annotated[str | None, Meta(description="Name; with `file`, the object to use.")] = None
    namespace: str = "default"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    priority: int | None = None
    requests: Annotated[Amounts, Meta(description="Requests by resource.")] = {}
    image: str = "registry.example/app:1"
    scheduler_name: str = "policysched"
    node_selector: dict[str, str] = {}
    created: Annotated[str | None, Meta(description="When it was created, as 2026-01-01T00:00:00Z.")] = None
    spec: Annotated[dict[str, Any], Meta(description="Other fields of the spec: affinity, tolerations …")] = {}


class PlacedShortPod(ShortPod, frozen=True):
    """A pod of the cluster, or `count` pods, in short form."""

    node: Annotated[str | None, Meta(description="The node of the pod; default: the pod is pending.")] = None
    count: Annotated[int, Meta(ge=1, le=100_000, description="Number of such pods; `*` in the name is the number.")] = 1


class GroupShortPod(ShortPod, frozen=True):
    """A pod of a group, or `count` pods, in short form."""

    count: Annotated[int, Meta(ge=1, le=5_000, description="Number of such pods; `*` in the name is the number.")] = 1


class ShortGroup(_Written, frozen=True):
    """A pod group with pods to schedule, in short form."""

    name: str = "group"
    namespace: str = "default"
    labels: dict[str, str] = {}
    min_count: Annotated[_Positive | None, Meta(description="minCount of a gang; default: a basic group.")] = None
    priority: Annotated[int | None, Meta(description="Priority of the group and its pods.")] = None
    topology_key: Annotated[str | None, Meta(description="Label whose value all nodes of the group share.")] = None
    spec: Annotated[dict[str, Any], Meta(description="Other fields of the PodGroup's spec.")] = {}
    pods: Annotated[list[GroupShortPod], Meta(description="New pods; its pending pods are scheduled with them.")] = []


class ShortCluster(_Written, frozen=True):
    """The cluster of a test: objects of files, nodes and pods in short form, and complete objects together."""

    files: Annotated[Names, Meta(description="Files with objects, relative to the tests.")] = []
    nodes: list[ShortNode] = []
    pods: list[PlacedShortPod] = []
    objects: Annotated[list[dict[str, Any]], Meta(description="Complete objects.")] = []


class TextExpectation(_Written, frozen=True):
    """An expected text: the whole text, or a part of it."""

    equals: str | None = None
    contains: str | None = None


Text = Annotated[str | TextExpectation, Meta(description="The whole text, or a part of it.")]


class NodeExpectation(_Written, frozen=True):
    """The expected result of a decision for one node: feasible, or rejected with plugin, code and reason."""

    feasible: Annotated[bool | None, Meta(description="Whether the node is feasible.")] = None
    plugin: Annotated[str | None, Meta(description="The plugin that rejects the node.")] = None
    code: Annotated[str | None, Meta(description="The status code of the rejection.")] = None
    reason: Annotated[Text | None, Meta(description="One of the reasons of the rejection.")] = None


class RuleExpectation(_Written, frozen=True):
    """The expected results of a filter: the complete lists of accepted and of rejected nodes."""

    kept: Annotated[Names | None, Meta(description="Nodes that the filter accepts.")] = None
    false: Annotated[Names | None, Meta(description="Nodes whose condition is false.")] = None
    missing: Annotated[Names | None, Meta(description="Nodes with a missing value in the condition.")] = None


class MemberExpectation(_Written, frozen=True):
    """The expected result for a pod of a group."""

    node: Annotated[str | None, Meta(description="The node that the pod gets.")] = None
    fits: Annotated[bool | None, Meta(description="Whether a node is feasible after the pods before it.")] = None
    reason: Annotated[Text | None, Meta(description="Why the pod gets no node.")] = None


class Expectation(_Written, frozen=True):
    """The expected result for a pod or pod group.

    Nodes can be patterns with `*` and `?`; rules are `RULE` or `POLICY/RULE`.
    """

    result: Literal["Scheduled", "Unschedulable", "Error"] | None = None
    selected: Annotated[str | None, Meta(description="The selected node.")] = None
    best: Annotated[Names | None, Meta(description="The best nodes; empty for an unschedulable pod.")] = None
    ties: Annotated[int | None, Meta(description="Number of equally good nodes.")] = None
    rejected: Annotated[
        dict[str, Names], Meta(description="By filter, the rejected nodes. Other filters must reject none.")
    ] = {}
    rules: Annotated[dict[str, RuleExpectation], Meta(description="By filter, its results.")] = {}
    scores: Annotated[
        dict[str, Numbers] | None,
        Meta(description="By score, values of feasible nodes, 0 to 100; null for no value. {} if no score applies."),
    ] = None
    plugins: Annotated[dict[str, Numbers], Meta(description="By plugin, weighted scores of nodes.")] = {}
    total: Annotated[Numbers, Meta(description="Sums of nodes in tier 0.")] = {}
    tiers: Annotated[dict[str, Numbers], Meta(description="By tier above 0, sums of nodes.")] = {}
    devices: Annotated[
        dict[str, Names], Meta(description="By resource claim, its devices, as driver/pool/device.")
    ] = {}
    nodes: Annotated[dict[str, NodeExpectation], Meta(description="By node, its rejection or feasibility.")] = {}
    reason: Annotated[Text | None, Meta(description="The FailedScheduling message.")] = None
    error: Annotated[Text | None, Meta(description="The message of an error.")] = None
    not_applied: Annotated[dict[str, Text], Meta(description="By policy, why it does not apply.")] = {}
    protected: Annotated[Names, Meta(description="Pods that a policy protects from preemption.")] = []
    nominated: Annotated[dict[str, Names], Meta(description="The nominated node and its victims.")] = {}
    placed: Annotated[int | None, Meta(description="Of a group: how many of its pods get nodes.")] = None
    values: Annotated[
        dict[str, int], Meta(description="Of a group: by label, number of values on the nodes of its pods.")
    ] = {}
    per_value: Annotated[
        dict[str, int], Meta(description="Of a group: by label, largest number of its pods on nodes of one value.")
    ] = {}
    members: Annotated[dict[str, MemberExpectation], Meta(description="Of a group: by pod, its node or reason.")] = {}
    victims: Annotated[Names, Meta(description="Of a group: the pods that preemption evicts.")] = []


class Removal(_Written, frozen=True):
    """Objects that a step of a test deletes."""

    nodes: Annotated[Names, Meta(description="Nodes, with their pods.")] = []
    pods: Annotated[Names, Meta(description="Pods, as namespace/name or name.")] = []


class PolicyEdit(_Written, frozen=True):
    """A change of a policy between two pods."""

    policy: Annotated[str, Meta(description="Name of the policy.")]
    spec: Annotated[dict[str, Any], Meta(description="A merge patch of its spec; null deletes a field.")] = {}
    delete: Annotated[bool, Meta(description="Whether to delete the policy.")] = False


Metrics = Annotated[dict[str, Numbers], Meta(description="Values by metric and node.")]


class PolicyTestStep(_Written, frozen=True):
    """A step: changes of time, metrics, objects and policies, then a pod or group and its expected result."""

    wait: Annotated[str | None, Meta(description="Time that passes: 30s, 5min, 2h, 1d.")] = None
    metrics: Metrics | None = None
    remove: Removal | None = None
    add: Annotated[ShortCluster | None, Meta(description="Objects to add or replace.")] = None
    edit: PolicyEdit | None = None
    pod: Annotated[ShortPod | None, Meta(description="The pod to schedule.")] = None
    group: Annotated[ShortGroup | None, Meta(description="The pod group to schedule.")] = None
    again: Annotated[str | None, Meta(description="A pending pod of an earlier step, to retry.")] = None
    expect: Expectation | None = None


class PolicyTest(_Written, frozen=True):
    """A test: a pod or group and its expected result, or several steps in one cluster."""

    given: Annotated[str, Meta(description="Description of the test.", min_length=1)]
    pod: ShortPod | None = None
    group: ShortGroup | None = None
    expect: Expectation | None = None
    now: Annotated[str | None, Meta(description="The current time; default 2026-01-01T00:00:00Z.")] = None
    metrics: Metrics | None = None
    policies: Annotated[Names | None, Meta(description="Policy files; overrides the file.")] = None
    cluster: Annotated[str | ShortCluster | None, Meta(description="Cluster; overrides the file.")] = None
    seed: int | None = None
    steps: Annotated[list[PolicyTestStep], Meta(description="Steps, in order, in one cluster.")] = []


class ExplainedMutant(_Written, frozen=True):
    """A change of a policy that no test has to notice, with the reason."""

    change: Annotated[str, Meta(description="The change, as `policysched test --mutate` prints it.")]
    reason: Annotated[str, Meta(description="Why no test needs to notice it.", min_length=1)]


class UnreachedPart(_Written, frozen=True):
    """A part of a policy that no test can reach, with the reason."""

    part: Annotated[str, Meta(description="The part, as `policysched test --coverage` prints it.")]
    reason: Annotated[str, Meta(description="Why no test can reach it.", min_length=1)]


class PolicyTestFile(_Written, frozen=True):
    """A test file; a file with only a list of tests is short for a mapping with only `tests`."""

    tests: list[PolicyTest]
    policies: Annotated[Names | None, Meta(description="Policy files; default policy.yaml.")] = None
    cluster: Annotated[
        str | ShortCluster | None, Meta(description="Cluster: a file or short form; default cluster.yaml.")
    ] = None
    config: Annotated[str | None, Meta(description="KubeSchedulerConfiguration file.")] = None
    now: Annotated[str | None, Meta(description="The current time of tests without `now`.")] = None
    metrics: Metrics | None = None
    seed: Annotated[int, Meta(description="Seed of the draw among equally good nodes.")] = 1
    mutants: Annotated[list[ExplainedMutant], Meta(description="Changes that no test has to notice.")] = []
    unreached: Annotated[list[UnreachedPart], Meta(description="Parts of policies that no test can reach.")] = []


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of test files, for editors."""
    made: dict[str, Any] = msgspec.json.schema(PolicyTestFile | list[PolicyTest])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Policy tests",
        **made,
    }
