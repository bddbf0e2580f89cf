"""The entries of a record, and what objects keep in it: the fields that scheduling reads, and no annotation beside.

An entry is a list of its name and what belongs to it. Containers' environments, Secrets and whatever else the model
does not know are not there in the first place; annotations may hold copies of anything, so only those are kept that
scheduling or a policy in force reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from policysched.framework import MetricAnswer, MetricKey
from policysched.framework.profile import Profile
from policysched.language.ir.graph import ANY_KEY
from policysched.model.custom_objects import CustomObject
from policysched.model.decode import ObjectError
from policysched.model.device_decoding import without_parameters
from policysched.model.kinds import KINDS, CustomResource
from policysched.model.objects import Metadata, Pod, ResourceClaim
from policysched.model.objects.storage import BETA_CLASS, BIND_COMPLETED
from policysched.model.policy import Policy, PolicySpec, Sample
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.state.resource_claims import EXTENDED_RESOURCE_CLAIM

BEGIN: Final = "begin"
"""A snapshot of the state, with which a file begins."""
SWAP: Final = "swap"
"""Other policies, or another configuration, are in force."""
TIME: Final = "time"
DECIDED: Final = "decided"
SEARCHED: Final = "searched"
"""PostFilter has looked for a way for the pod of the decision before."""
PLACED: Final = "placed"
"""The pod of the last decision counts on its node."""
ASSUMED: Final = "assumed"
"""A resource claim stands as it was written, before the watch has told of it."""
RESTORED: Final = "restored"
"""A resource claim, by its key, stands as the watch has told of it."""
ALLOCATED: Final = "allocated"
"""A resource claim is in flight with what it gets."""
RELEASED: Final = "released"
"""A resource claim, by its UID, is not in flight any more."""
READ_ANNOTATIONS: Final = frozenset((
    BETA_CLASS, BIND_COMPLETED, "volume.kubernetes.io/selected-node", "storage.alpha.kubernetes.io/migrated-plugins",
    "kubernetes.io/config.mirror", EXTENDED_RESOURCE_CLAIM,
))  # fmt: skip
"""The annotations that the default plugins read."""
NEVER: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""Holds whole objects, with all that they say."""


START: Final = "the start"
"""The reason for the snapshot with which a scheduler process begins its record."""


class Begin(msgspec.Struct, array_like=True):
    """The state of the cluster, and what is in force."""

    program: str
    """The version that wrote it."""
    why: str
    """Why it is here: at the start, as files follow each other, after a gap."""
    lost: int
    """How many entries before it were given up."""
    decisions: int
    """How many decisions came before it."""
    seconds: float
    configuration: dict[str, Any]
    policies: list[Any]
    annotations: list[str] | None
    """The annotations that are kept; None: all but one."""
    rows: list[str]
    """The node's name of each row, empty for a free one."""
    objects: list[Any]
    reserved: list[Any]
    """Volumes and claims that pods have taken and the API server has not told of."""
    pods: list[Any]
    """Pods that have a place, each with its row where it is only assumed and −1 elsewhere."""
    nominations: list[Any]
    answers: list[Any]
    assumed_claims: list[Any] = []
    """Resource claims as they were written, where the API server has not told of that."""
    claims_in_flight: list[Any] = []
    """Resource claims with the allocations that are being written."""


class RecordedOutcome(msgspec.Struct, array_like=True, frozen=True):
    """What came of a decision."""

    node: str
    nominated: bool
    """Whether only the nominated node was looked at."""
    feasible: int
    ties: int
    text: str
    """Why no node is feasible, or what failed."""
    digest: bytes
    """Of the totals of feasible nodes, and of the filters that reject the others."""


class Decided(msgspec.Struct, array_like=True):
    """A decision: what went in, and what came out."""

    number: int
    profile: str
    pod: Any
    seconds: float
    draws: list[float | int]
    extended: bool
    """Whether extenders were asked, whose answers are not recorded."""
    outcome: RecordedOutcome


class Searched(msgspec.Struct, array_like=True):
    """What PostFilter came to."""

    node: str
    victims: list[str]
    draws: list[float | int]


def kind_name(obj: Any) -> str:
    """Name the kind of an object."""
    return str(obj.resource.value) if isinstance(obj, CustomObject) else type(obj).__name__


def written(obj: Any, kept: frozenset[str] | None) -> list[Any]:
    """Return an object with its kind, without annotations and parameters of devices that nobody reads.

    Args:
        obj: The object.
        kept: The annotations that are kept; None keeps all but one.
    """
    annotations = obj.metadata.annotations
    if annotations:
        found = {key: text for key, text in annotations.items() if key != NEVER and (kept is None or key in kept)}
        obj = msgspec.structs.replace(obj, metadata=replace(obj.metadata, annotations=found))
    if isinstance(obj, CustomObject):
        return [kind_name(obj), obj.metadata, obj.content]
    return [kind_name(obj), without_parameters(obj)]


def read_object(given: list[Any]) -> Any:
    """Read an object.

    Raises:
        msgspec.ValidationError: it is none.
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
    """Read a resource claim.

    Raises:
        msgspec.ValidationError: it is none.
    """
    read = read_object(given)
    if not isinstance(read, ResourceClaim):
        raise msgspec.ValidationError(f"{kind_name(read)} is not a ResourceClaim")
    return read


def read_pod(given: Any) -> Pod:
    """Read a pod."""
    return msgspec.convert(given, Pod)


def read_answer(given: list[Any]) -> MetricAnswer:
    """Read what a metrics source said."""
    key, samples, problem = given
    read = None if samples is None else {name: Sample(*one) for name, one in samples.items()}
    return MetricAnswer(MetricKey(*key), read, problem)


def written_answer(answer: MetricAnswer) -> list[Any]:
    """Return what a metrics source said."""
    return [list(answer.key), None if answer.samples is None else dict(answer.samples), answer.problem]


def written_policies(policies: PolicySet) -> list[Any]:
    """Return the policies in force: name, generation and spec of each."""
    return [[one.policy.key, one.policy.generation, one.policy.spec] for one in policies.plugins]


def read_policies(given: list[Any]) -> list[Policy]:
    """Read policies."""
    return [
        Policy(
            metadata=msgspec.convert({"name": name, "generation": generation}, Metadata),
            spec=msgspec.convert(spec, PolicySpec),
        )
        for name, generation, spec in given
    ]


def annotations_read(policies: Iterable[CompiledPolicy], profiles: Iterable[Profile]) -> frozenset[str] | None:
    """Return the annotations that decisions read; None where that may be any: of a key that is made, or by a plugin."""
    if any(one.out_of_tree_cycle for one in profiles):
        return None
    keys = _annotations_of(policies)
    return None if keys is None else READ_ANNOTATIONS | keys


def _annotations_of(policies: Iterable[CompiledPolicy]) -> frozenset[str] | None:
    """Return the annotations that policies name; None where they make a key."""
    inputs = (item for policy in policies for item in policy.inputs)
    keys = {item.key for item in inputs if "annotations" in item.path}
    if ANY_KEY in keys or None in keys:
        return None
    return frozenset(key for key in keys if key is not None)


def misses(kept: Iterable[str] | None, policies: Iterable[CompiledPolicy]) -> Iterable[str]:
    """Name the annotations that policies read and a record does not keep.

    What the default plugins read is no matter: a record of a version that did not read it is replayed as it is.
    """
    if kept is None:
        return ()
    wanted = _annotations_of(policies)
    return sorted(wanted - set(kept)) if wanted is not None else ("any annotation",)
