"""The shape of a file of tests: structs that the loader converts to and that the JSON schema for editors is made of.

Every field that is not known is an error, because a misspelt expectation would be one that cannot fail. What is left
out of an expectation is not looked at, but for filters and preemption: those that turn nodes away, and pods that make
room, are always told.

Source: docs/write/testing.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Amounts = dict[str, str | int | float]
Names = list[str]
Numbers = dict[str, float | None]


class _Written(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel", omit_defaults=True):
    """A part of a file of tests."""


class ShortNode(_Written, frozen=True):
    """A node in a line; with a count, as many nodes of its kind."""

    name: Annotated[str, Meta(description="Its name. With a count, `*` in it is the number of the node, from 1.")]
    count: Annotated[int, Meta(ge=1, le=100_000, description="How many nodes of this kind.")] = 1
    labels: Annotated[dict[str, str], Meta(description="Labels; `*` in a value is the number of the node.")] = {}
    annotations: dict[str, str] = {}
    taints: Annotated[Names, Meta(description="Taints as `key=value:Effect` or `key:Effect`.")] = []
    allocatable: Annotated[
        Amounts, Meta(description="Allocatable amounts; 4 cores, 16 Gi and 110 pods if absent.")
    ] = {}
    images: Annotated[Amounts, Meta(description="Images that are there, with their sizes.")] = {}
    ready: bool = True
    cordoned: bool = False
    created: Annotated[str | None, Meta(description="When it was created, as 2026-01-01T00:00:00Z.")] = None


class ShortPod(_Written, frozen=True):
    """What matters of a pod; the rest is filled in."""

    file: Annotated[str | None, Meta(description="A file beside the tests with the pod or a workload.")] = None
    name: Annotated[str | None, Meta(description="Its name; in a file, which object is meant.")] = None
    namespace: str = "default"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    priority: int | None = None
    requests: Annotated[Amounts, Meta(description="What it requests, by resource.")] = {}
    image: str = "registry.example/app:1"
    scheduler_name: str = "policysched"
    node_selector: dict[str, str] = {}
    created: Annotated[str | None, Meta(description="When it was created, as 2026-01-01T00:00:00Z.")] = None
    spec: Annotated[dict[str, Any], Meta(description="Any other fields of its spec: affinity, tolerations …")] = {}


class PlacedShortPod(ShortPod, frozen=True):
    """A pod that is in the cluster already; with a count, as many pods of its kind."""

    node: Annotated[str | None, Meta(description="The node that it is on; absent, it waits.")] = None
    count: Annotated[int, Meta(ge=1, le=100_000, description="How many; `*` in the name is the number.")] = 1


class ShortCluster(_Written, frozen=True):
    """A cluster: files, nodes and pods in short, and other objects in full, all together."""

    files: Annotated[Names, Meta(description="Files beside the tests, as kubectl prints objects.")] = []
    nodes: list[ShortNode] = []
    pods: list[PlacedShortPod] = []
    objects: Annotated[list[dict[str, Any]], Meta(description="Objects as kubectl prints them.")] = []


class TextExpectation(_Written, frozen=True):
    """What a text has to be, or to hold."""

    equals: str | None = None
    contains: str | None = None


Text = Annotated[str | TextExpectation, Meta(description="The whole text, or what it contains.")]


class NodeExpectation(_Written, frozen=True):
    """What is to be said of one node."""

    feasible: Annotated[bool | None, Meta(description="Whether the pod may go there.")] = None
    plugin: Annotated[str | None, Meta(description="Which plugin turns it away.")] = None
    code: Annotated[str | None, Meta(description="With which code.")] = None
    reason: Annotated[Text | None, Meta(description="One of the reasons.")] = None


class RuleExpectation(_Written, frozen=True):
    """What a filter says of nodes: true, false, or that a value is missing. Each is the whole list."""

    kept: Annotated[Names | None, Meta(description="Nodes that it keeps.")] = None
    false: Annotated[Names | None, Meta(description="Nodes where its condition is false.")] = None
    missing: Annotated[Names | None, Meta(description="Nodes where a value of its condition is missing.")] = None


class Expectation(_Written, frozen=True):
    """What becomes of a pod. Nodes are names, or patterns with `*` and `?`; rules are `RULE` or `POLICY/RULE`."""

    result: Literal["Scheduled", "Unschedulable", "Error"] | None = None
    selected: Annotated[str | None, Meta(description="The node that it goes to.")] = None
    best: Annotated[Names | None, Meta(description="The nodes that it may go to; none where it has to wait.")] = None
    ties: Annotated[int | None, Meta(description="How many nodes are equally good.")] = None
    rejected: Annotated[
        dict[str, Names], Meta(description="By filter, the nodes that it turns away. Others keep all nodes.")
    ] = {}
    rules: Annotated[dict[str, RuleExpectation], Meta(description="By filter, what it says of nodes.")] = {}
    scores: Annotated[
        dict[str, Numbers] | None,
        Meta(description="By score, what it gives the feasible nodes; null for nothing. {} where no score is asked."),
    ] = None
    plugins: Annotated[dict[str, Numbers], Meta(description="By plugin, its weighted score of nodes.")] = {}
    total: Annotated[Numbers, Meta(description="The sum of tier 0's scores of nodes.")] = {}
    tiers: Annotated[dict[str, Numbers], Meta(description="By tier above 0, the sum of its scores of nodes.")] = {}
    devices: Annotated[
        dict[str, Names], Meta(description="By resource claim, the devices that it gets, as driver/pool/device.")
    ] = {}
    nodes: Annotated[dict[str, NodeExpectation], Meta(description="By node, what turns it away, or that it fits.")] = {}
    reason: Annotated[Text | None, Meta(description="The message of the event about a pod that waits.")] = None
    error: Annotated[Text | None, Meta(description="Why the pod cannot be decided about.")] = None
    not_applied: Annotated[dict[str, Text], Meta(description="By policy, why it has no part in the decision.")] = {}
    protected: Annotated[Names, Meta(description="The pods that a condition on victims protects.")] = []
    nominated: Annotated[dict[str, Names], Meta(description="The node where pods make room, and these pods.")] = {}


class Removal(_Written, frozen=True):
    """What goes away."""

    nodes: Annotated[Names, Meta(description="Nodes, with the pods on them.")] = []
    pods: Annotated[Names, Meta(description="Pods, as namespace/name or name.")] = []


class PolicyEdit(_Written, frozen=True):
    """An edit of a policy between two pods."""

    policy: Annotated[str, Meta(description="Its name.")]
    spec: Annotated[dict[str, Any], Meta(description="A merge patch of its spec: null takes a field away.")] = {}
    delete: Annotated[bool, Meta(description="Whether the policy goes.")] = False


Metrics = Annotated[dict[str, Numbers], Meta(description="Values by metric and node.")]


class PolicyTestStep(_Written, frozen=True):
    """A step: what changes first (time, metrics, objects, policies), then a pod and what becomes of it."""

    wait: Annotated[str | None, Meta(description="Time that passes: 30s, 5min, 2h, 1d.")] = None
    metrics: Metrics | None = None
    remove: Removal | None = None
    add: Annotated[ShortCluster | None, Meta(description="Objects that come; one of a known name replaces it.")] = None
    edit: PolicyEdit | None = None
    pod: Annotated[ShortPod | None, Meta(description="The pod that comes.")] = None
    again: Annotated[str | None, Meta(description="A pod of an earlier step that waits, tried again.")] = None
    expect: Expectation | None = None


class PolicyTest(_Written, frozen=True):
    """A test: a pod and what becomes of it, or several steps with one cluster."""

    given: Annotated[str, Meta(description="What the test is about, in words.", min_length=1)]
    pod: ShortPod | None = None
    expect: Expectation | None = None
    now: Annotated[str | None, Meta(description="The time that rules see; 2026-01-01T00:00:00Z if absent.")] = None
    metrics: Metrics | None = None
    policies: Annotated[Names | None, Meta(description="Files of policies, in place of the file's.")] = None
    cluster: Annotated[str | ShortCluster | None, Meta(description="A cluster in place of the file's.")] = None
    seed: int | None = None
    steps: Annotated[
        list[PolicyTestStep], Meta(description="Steps in order; each sees what those before it left.")
    ] = []


class ExplainedMutant(_Written, frozen=True):
    """A change of a policy that no test can notice, because it changes nothing that matters."""

    change: Annotated[str, Meta(description="The change, as `policysched test --mutate` prints it.")]
    reason: Annotated[str, Meta(description="Why no test needs to notice it.", min_length=1)]


class UnreachedPart(_Written, frozen=True):
    """A part of a policy that no test can reach, such as a missing value where a guard needs it."""

    part: Annotated[str, Meta(description="The part, as `policysched test --coverage` prints it.")]
    reason: Annotated[str, Meta(description="Why no test can reach it.", min_length=1)]


class PolicyTestFile(_Written, frozen=True):
    """A file of tests; a list of tests alone stands for one with the default policies and cluster."""

    tests: list[PolicyTest]
    policies: Annotated[Names | None, Meta(description="Files of policies; policy.yaml if absent.")] = None
    cluster: Annotated[
        str | ShortCluster | None, Meta(description="A file, or a cluster in short; cluster.yaml if absent.")
    ] = None
    config: Annotated[str | None, Meta(description="A file with a KubeSchedulerConfiguration.")] = None
    now: Annotated[str | None, Meta(description="The time of tests that name none.")] = None
    metrics: Metrics | None = None
    seed: Annotated[int, Meta(description="What draws among equally good nodes.")] = 1
    mutants: Annotated[list[ExplainedMutant], Meta(description="Changes that no test needs to notice.")] = []
    unreached: Annotated[list[UnreachedPart], Meta(description="Parts of policies that no test can reach.")] = []


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a file of tests, for editors."""
    made: dict[str, Any] = msgspec.json.schema(PolicyTestFile | list[PolicyTest])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tests of scheduling policies",
        **made,
    }
