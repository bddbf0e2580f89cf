"""Entries of a record; objects in a record have only the fields that scheduling reads.

An entry is a list of its name and its data. Environments of containers, Secrets and other fields outside of the model
are never recorded. Annotations can contain copies of anything, so only those are recorded that scheduling or a policy
in force reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from policysched.framework import MetricAnswer, MetricKey, RowNumbers
from policysched.framework.profile import Profile
from policysched.language.ir.graph import ANY_KEY
from policysched.model.custom_objects import CustomObject
from policysched.model.decode import ObjectError
from policysched.model.device_decoding import without_parameters
from policysched.model.kinds import KINDS, CustomResource
from policysched.model.objects import Metadata, Pod, ResourceClaim
from policysched.model.objects.storage import BETA_CLASS, BIND_COMPLETED
from policysched.model.policy import Policy, PolicySpec, Sample
from policysched.model.release import RELEASES, Release
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.state.resource_claims import EXTENDED_RESOURCE_CLAIM

BEGIN: Final = "begin"
"""Name of the entry with a snapshot of the state, with which a file begins."""
SWAP: Final = "swap"
"""Name of the entry for new policies or a new configuration in force."""
TIME: Final = "time"
"""Name of the entry that changes the cluster's time."""
DECIDED: Final = "decided"
"""Name of the entry for a decision with its inputs and result."""
SEARCHED: Final = "searched"
"""Name of the entry for the result of PostFilter for the last decision's pod."""
GROUPED: Final = "grouped"
"""Name of the entry for the decision about a pod group, before the decisions about its members."""
WAITING: Final = "waiting"
"""Name of the entry for a pending member of a pod group."""
LEFT: Final = "left"
"""Name of the entry for a pending pod, by identity, that is no longer a member of a pod group."""
PLACED: Final = "placed"
"""Name of the entry that assumes the last decision's pod on its node."""
ASSUMED: Final = "assumed"
"""Name of the entry for a written resource claim, before the watch confirms it."""
RESTORED: Final = "restored"
"""Name of the entry that resets a resource claim, by key, to its watched state."""
ALLOCATED: Final = "allocated"
"""Name of the entry for an allocation of a resource claim in flight."""
RELEASED: Final = "released"
"""Name of the entry that ends a resource claim's allocation in flight, by UID."""
SHARED: Final = "shared"
"""Name of the entry that begins or ends the time in which pods of one group share allocations of resource claims."""
READ_ANNOTATIONS: Final = frozenset((
    BETA_CLASS, BIND_COMPLETED, "volume.kubernetes.io/selected-node", "storage.alpha.kubernetes.io/migrated-plugins",
    "kubernetes.io/config.mirror", EXTENDED_RESOURCE_CLAIM,
))  # fmt: skip
"""Annotations that the default plugins read."""
NEVER_RECORDED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation that is never recorded, because it contains a copy of a whole object."""
START: Final = "the start"
"""Reason of the snapshot with which a scheduler process begins its record."""


class Begin(msgspec.Struct, array_like=True):
    """A snapshot of the cluster with configuration and policies in force."""

    program: str
    """Version of policysched that wrote the record."""
    why: str
    """Reason of the snapshot: the start, the next file, or a gap."""
    lost: int
    """Number of entries that were lost before the snapshot."""
    decisions: int
    """Number of decisions before the snapshot."""
    seconds: float
    configuration: dict[str, Any]
    policies: list[Any]
    annotations: list[str] | None
    """Recorded annotations; None: all except kubectl's last-applied-configuration."""
    rows: list[str]
    """Name of the node of each index (row) in the cluster's arrays; empty for an unused index."""
    objects: list[Any]
    reserved: list[Any]
    """Volumes and claims that pods have reserved and the watch has not confirmed."""
    pods: list[Any]
    """Placed pods, each with the index of the node on which it is assumed, or −1 if the watch confirmed the node."""
    nominations: list[Any]
    answers: list[Any]
    assumed_claims: list[Any] = []
    """Written resource claims that the watch has not confirmed."""
    claims_in_flight: list[Any] = []
    """Resource claims with allocations in flight."""
    reference: str = "1.36"
    """The Kubernetes minor that decisions follow; 1.36 for records of versions that did not store the minor."""
    gates: list[str] = []
    """Names of the fields of `Release` (the rules of a Kubernetes minor) that feature gates turned on."""
    waiting: list[Any] = []
    """Pending members of pod groups."""


class RecordedOutcome(msgspec.Struct, array_like=True, frozen=True):
    """The result of a decision as stored in a record."""

    node: str
    nominated: bool
    """Whether only the nominated node was evaluated."""
    feasible: int
    ties: int
    text: str
    """Reason why no node is feasible, or the error."""
    digest: bytes
    """Digest of the totals of feasible nodes and of the filters that reject the infeasible nodes."""


class Decided(msgspec.Struct, array_like=True):
    """A decision with its inputs and result."""

    number: int
    profile: str
    pod: Any
    """The pod; only the pod's identity if the pod is a member of the last decided group."""
    seconds: float
    draws: list[float | int]
    extended: bool
    """Whether extenders were called, whose answers are not recorded."""
    outcome: RecordedOutcome
    placement: list[int] | None = None
    """Indexes of the nodes to which a placement of the pod's group limited the decision; None for all nodes."""

    @property
    def rows(self) -> RowNumbers | None:
        """Indexes of the nodes to which a placement limited the decision, as an array; None for all nodes."""
        return None if self.placement is None else np.array(self.placement, np.intp)


class RecordedGroupOutcome(msgspec.Struct, array_like=True, frozen=True):
    """The result of a decision about a pod group as stored in a record."""

    result: str
    message: str
    nodes: dict[str, str]
    """Nodes of the members that fit, by identity."""
    nominated: dict[str, str]
    """Nodes that members are nominated for, by identity."""
    victims: list[str]


class DecidedPodGroup(msgspec.Struct, array_like=True):
    """The decision about a pod group with its inputs and result; the decisions about its members follow."""

    number: int
    """Number of decisions before this decision."""
    profile: str
    group: str
    """The pod group: `namespace/name`."""
    pods: list[Any]
    """The members, in the order of evaluation."""
    seconds: float
    draws: list[float | int]
    outcome: RecordedGroupOutcome | None
    """The result; None if the cycle failed, or if extenders, whose answers are not recorded, were called."""


class Searched(msgspec.Struct, array_like=True):
    """The result of PostFilter for the last decision's pod, as stored in a record."""

    node: str
    victims: list[str]
    draws: list[float | int]


def gates_of(release: Release) -> list[str]:
    """Return the names of the fields of `Release` (the rules of a Kubernetes minor) that feature gates turned on."""
    base = RELEASES[release.minor]
    names = [one.name for one in fields(release) if getattr(release, one.name) is True]
    return [name for name in names if getattr(base, name) is False]


def kind_name(obj: Any) -> str:
    """Return the name of an object's kind."""
    return str(obj.resource.value) if isinstance(obj, CustomObject) else type(obj).__name__


def written(obj: Any, kept: frozenset[str] | None) -> list[Any]:
    """Return a Kubernetes object with its kind, without unread annotations and opaque device parameters.

    Args:
        obj: The object.
        kept: Recorded annotations; None: all except `NEVER_RECORDED`.
    """
    annotations = obj.metadata.annotations
    if annotations:
        found = {
            key: text for key, text in annotations.items() if key != NEVER_RECORDED and (kept is None or key in kept)
        }
        obj = msgspec.structs.replace(obj, metadata=replace(obj.metadata, annotations=found))
    if isinstance(obj, CustomObject):
        return [kind_name(obj), obj.metadata, obj.content]
    return [kind_name(obj), without_parameters(obj)]


def read_object(given: list[Any]) -> Any:
    """Decode a recorded object.

    Raises:
        msgspec.ValidationError: the data is not an object.
    """
    name = given[0]
    if not isinstance(name, str):
        raise msgspec.ValidationError(f"{name!r:.80} is not a kind of object")
    if len(given) == 3:
        return CustomObject(CustomResource(name), msgspec.convert(given[1], Metadata), given[2])
    kind = KINDS.get(name)
    if kind is None:
        raise msgspec.ValidationError(f"{name} is not a kind of object")
    try:
        return kind.decode(given[1])
    except ObjectError as error:
        raise msgspec.ValidationError(str(error)) from error


def read_claim(given: list[Any]) -> ResourceClaim:
    """Decode a recorded resource claim.

    Raises:
        msgspec.ValidationError: the data is not a resource claim.
    """
    read = read_object(given)
    if not isinstance(read, ResourceClaim):
        raise msgspec.ValidationError(f"{kind_name(read)} is not a ResourceClaim")
    return read


def read_pod(given: Any) -> Pod:
    """Decode a recorded pod."""
    return msgspec.convert(given, Pod)


def read_answer(given: list[Any]) -> MetricAnswer:
    """Decode the recorded answer of a metrics source."""
    key, samples, problem = given
    read = None if samples is None else {name: Sample(*one) for name, one in samples.items()}
    return MetricAnswer(MetricKey(*key), read, problem)


def written_answer(answer: MetricAnswer) -> list[Any]:
    """Return the answer of a metrics source for a record."""
    return [list(answer.key), None if answer.samples is None else dict(answer.samples), answer.problem]


def written_policies(policies: PolicySet) -> list[Any]:
    """Return the policies in force for a record: name, generation and spec of each."""
    return [[one.policy.key, one.policy.generation, one.policy.spec] for one in policies.active]


def read_policies(given: list[Any]) -> list[Policy]:
    """Decode recorded policies."""
    return [
        Policy(
            metadata=msgspec.convert({"name": name, "generation": generation}, Metadata),
            spec=msgspec.convert(spec, PolicySpec),
        )
        for name, generation, spec in given
    ]


def annotations_read(policies: Iterable[CompiledPolicy], profiles: Iterable[Profile]) -> frozenset[str] | None:
    """Return the annotations that decisions read; None if any annotation can be read (computed keys, plugins)."""
    if any(one.out_of_tree_cycle for one in profiles):
        return None
    keys = _annotations_of(policies)
    return None if keys is None else READ_ANNOTATIONS | keys


def _annotations_of(policies: Iterable[CompiledPolicy], without: str = "") -> frozenset[str] | None:
    """Return the annotations that policies read, except those of the object `without`; None if a key is computed."""
    inputs = (item for policy in policies for item in policy.inputs)
    keys = {item.key for item in inputs if "annotations" in item.path and item.root != without}
    if ANY_KEY in keys or None in keys:
        return None
    return frozenset(key for key in keys if key is not None)


def missing_annotations(
    kept: Iterable[str] | None, policies: Iterable[CompiledPolicy], without: str = ""
) -> Collection[str]:
    """Return the annotations that policies read and a record lacks.

    Annotations of the default plugins are not considered: a record of a version that did not read one is replayed
    without it.

    Args:
        kept: The annotations in the record; None: all.
        policies: The policies.
        without: Root of expressions, such as `pod`, whose annotations are not considered.
    """
    if kept is None:
        return ()
    wanted = _annotations_of(policies, without)
    return sorted(wanted - set(kept)) if wanted is not None else ("any annotation",)
