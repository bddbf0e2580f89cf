"""The structs of SchedulingPolicy objects, and of metric values that policies read.

Expressions are texts here; `policysched.language` reads them and `policysched.rules` compiles them. A status says what
became of a policy and decides nothing: one that cannot be read counts as empty. The last good generation is kept in an
annotation, because who may write a status alone cannot write that. Policies that ask the same query, joined by the same
label, share its values: unit and greatest age are each policy's own matter. Values stand in the server's base units
(cores, bytes, seconds), because a server does not know ours.

Source: docs/reference/language.md#the-object.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, NewType

import msgspec
from msgspec import Meta

from policysched.model.decode import ObjectError, decode
from policysched.model.objects.meta import LabelSelector, Metadata, Struct
from policysched.reading.lenient_json import UNREADABLE

API_GROUP: Final = "policysched.io"
API_VERSION: Final = "policysched.io/v1alpha1"
KIND: Final = "SchedulingPolicy"
PLURAL: Final = "schedulingpolicies"
LAST_GOOD: Final = "policysched.io/last-good"
"""The annotation that keeps the last generation that compiled."""
COMPRESSED: Final = "zlib:"
"""How a compressed value of the annotation begins; base64 follows. Other values are JSON."""
LARGEST_LAST_GOOD: Final = 3 << 20
"""Maximum size of the JSON in the annotation, which is the API server's limit for a request. Larger values are
rejected. Units: bytes."""
MAX_ANNOTATIONS: Final = 256 << 10
"""Maximum size of all annotations of an object, names included; the API server rejects more. Units: bytes."""

PolicyKey = NewType("PolicyKey", str)
"""By what a policy is known wherever it is kept, told about or counted: its name, as policies have no namespace."""
Mode = Literal["Enforce", "Shadow", "Disabled"]
Normalize = Literal["None", "Max"]
Weight = Annotated[int, Meta(ge=0, le=100)]
Tier = Annotated[int, Meta(ge=0, le=100)]
MOST_STATUS: Final = 512 * 1024
"""The longest status that is read: ours are shorter, and reading one takes longer than leaving it out. Units: bytes."""
Expression = int | str
"""What a field takes that may be a number or an expression."""


class MetricQuery(Struct, frozen=True):
    """A series that an expression can read as `metrics.<name>`."""

    name: str
    query: str
    node_label: str = "node"
    unit: str = "number"
    max_age: str = "2min"


class Let(Struct, frozen=True):
    """A name for an expression."""

    name: str
    value: Expression


class FilterRule(Struct, frozen=True):
    """A condition that a node must meet; `when` says for which pods."""

    name: str
    require: str
    when: str | None = None
    message: str | None = None


class ScoreRule(Struct, frozen=True):
    """A number for every node, from the first true case or from `value`."""

    name: str
    weight: Weight = 1
    normalize: Normalize | None = None
    cases: list[str] = []
    value: Expression | None = None
    when: str | None = None


class PreemptionRule(Struct, frozen=True):
    """A condition that a pod must meet to be a victim of preemption."""

    require: str
    name: str = "preemption"
    """The name under which reasons tell of it."""
    message: str | None = None


class PolicySpec(Struct, frozen=True):
    """What a policy wants."""

    mode: Mode = "Enforce"
    include_system_pods: bool = False
    scheduler_names: list[str] = []
    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    applies_to: str | None = None
    priority: int = 0
    weight: Weight = 1
    tier: Tier = 0
    metrics: list[MetricQuery] = []
    let: list[Let] = []
    filters: list[FilterRule] = []
    scores: list[ScoreRule] = []
    preemption: PreemptionRule | None = None


class PolicyCondition(Struct, frozen=True):
    """One of a policy's conditions."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class PolicyDiagnostic(Struct, frozen=True):
    """An error or a warning about one field; line and column count from 1 inside its text."""

    severity: str = ""
    code: str = ""
    field: str = ""
    line: int = 0
    column: int = 0
    end_column: int = 0
    message: str = ""
    help: str = ""


class PolicyCost(Struct, frozen=True):
    """How many operations of each size a decision takes."""

    scalar: int = 0
    nodes: int = 0
    pods: int = 0


class PolicyInput(Struct, frozen=True):
    """On how many nodes an input of the policy is present."""

    name: str = ""
    present: int = 0
    total: int = 0
    problem: str = ""


class PolicyInstance(Struct, frozen=True):
    """What one installation of the scheduler has to say."""

    name: str = ""
    active_generation: int = 0
    inputs: list[PolicyInput] = []


class PolicyStatus(Struct, frozen=True):
    """What became of the policy."""

    observed_generation: int = 0
    active_generation: int = 0
    active_spec: dict[str, Any] | None = None
    rules: int = 0
    conditions: list[PolicyCondition] = []
    diagnostics: list[PolicyDiagnostic] = []
    cost: PolicyCost | None = None
    instances: list[PolicyInstance] = []


class Policy(Struct, frozen=True):
    """A SchedulingPolicy; a policy without a spec does nothing."""

    metadata: Metadata = Metadata()
    spec: PolicySpec = PolicySpec()
    status: PolicyStatus = PolicyStatus()

    @property
    def key(self) -> PolicyKey:
        """By what the policy is known."""
        return PolicyKey(self.metadata.name)


class UnreadablePolicy(Policy, frozen=True):
    """A policy with a spec that cannot be read: its own says nothing, and what was in force stays."""

    field: str = ""
    reason: str = ""


class LastGood(Struct, frozen=True):
    """A generation that compiled, as the annotation keeps it: of this object and no other."""

    uid: str
    generation: int
    spec: PolicySpec


def decode_policy(raw: bytes | Mapping[str, Any]) -> Policy:
    """Decode a policy; a status that cannot be read, or is longer than any of ours, counts as empty.

    Raises:
        ObjectError: a field has the wrong type or is missing; `field` says which.
    """
    if isinstance(raw, bytes) and len(raw) > MOST_STATUS:
        raw = _without_long_status(raw)
    try:
        return decode(Policy, KIND, raw)
    except ObjectError as error:
        if not error.field.startswith("status"):
            raise
        plain = decode(dict[str, Any], KIND, raw)
        return decode(Policy, KIND, {key: value for key, value in plain.items() if key != "status"})


def decode_watched_policy(raw: bytes | Mapping[str, Any]) -> Policy:
    """Decode a policy; one whose spec alone cannot be read, such as one of a later version, is an UnreadablePolicy.

    Raises:
        ObjectError: it cannot be told which object it is.
    """
    try:
        return decode_policy(raw)
    except ObjectError as error:
        if not error.field.startswith("spec"):
            raise
        plain = decode(dict[str, Any], KIND, raw)
        named = decode_policy({key: value for key, value in plain.items() if key != "spec"})
        return UnreadablePolicy(named.metadata, status=named.status, field=error.field, reason=error.reason)


def _without_long_status(raw: bytes) -> bytes:
    """Leave out a status that is too long, of what can be taken apart."""
    try:
        parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        return raw
    if len(bytes(parts.get("status", b""))) <= MOST_STATUS:
        return raw
    del parts["status"]
    return msgspec.json.encode(parts)


def last_good_text(policy: Policy, generation: int, spec: PolicySpec) -> str:
    """Return the value of the annotation for a generation of a policy: JSON, compressed, in base64."""
    plain = msgspec.json.encode(LastGood(uid=policy.metadata.uid, generation=generation, spec=spec))
    return COMPRESSED + base64.b64encode(zlib.compress(plain, 9)).decode()


def decode_last_good(policy: Policy) -> LastGood | None:
    """Decode the last good generation in a policy's annotation, compressed or JSON; None without the annotation.

    Raises:
        ObjectError: it is malformed or too large, belongs to another object, or its generation does not exist yet.
    """
    text = policy.metadata.annotations.get(LAST_GOOD)
    if text is None:
        return None
    kept = decode(LastGood, KIND, _decompressed(policy, text))
    if kept.uid != policy.metadata.uid:
        raise ObjectError(KIND, policy.key, "it belongs to another object", LAST_GOOD)
    if not 0 < kept.generation <= policy.metadata.generation:
        raise ObjectError(KIND, policy.key, f"generation {kept.generation} does not exist yet", LAST_GOOD)
    return kept


def keeps(policy: Policy, generation: int, spec: PolicySpec) -> bool:
    """Return whether the annotation of a policy contains this generation, however it is compressed."""
    try:
        return decode_last_good(policy) == LastGood(uid=policy.metadata.uid, generation=generation, spec=spec)
    except ObjectError:
        return False


def annotations_size(annotations: Mapping[str, str]) -> int:
    """Return the size of annotations as the API server counts it against MAX_ANNOTATIONS. Units: bytes."""
    return sum(len(name.encode()) + len(text.encode()) for name, text in annotations.items())


def _decompressed(policy: Policy, text: str) -> bytes:
    """Return the JSON of an annotation.

    Raises:
        ObjectError: it cannot be decompressed, or is larger than LARGEST_LAST_GOOD.
    """
    if not text.startswith(COMPRESSED):
        return text.encode()
    unpacking = zlib.decompressobj()
    try:
        packed = base64.b64decode(text.removeprefix(COMPRESSED), validate=True)
        plain = unpacking.decompress(packed, LARGEST_LAST_GOOD + 1)
    except (ValueError, zlib.error) as error:
        raise ObjectError(KIND, policy.key, f"it cannot be decompressed: {error}", LAST_GOOD) from error
    if len(plain) > LARGEST_LAST_GOOD:
        raise ObjectError(KIND, policy.key, f"it is larger than {LARGEST_LAST_GOOD >> 20} MiB", LAST_GOOD)
    if not unpacking.eof:
        raise ObjectError(KIND, policy.key, "it cannot be decompressed: it is incomplete", LAST_GOOD)
    return plain


class MetricKey(NamedTuple):
    """What identifies the values of a metric, whatever policies call it."""

    query: str
    node_label: str
    """The label of the result's series whose value is the node's name."""


class Sample(NamedTuple):
    """One node's value."""

    value: float
    """A finite number. Units: number, cores, bytes or seconds, as the policy's `unit` says."""
    at: float
    """When it held, never in the future. Units: seconds since 1970, UTC."""


@dataclass(frozen=True, slots=True)
class MetricAnswer:
    """What one refresh found out about one metric, for all nodes at once."""

    key: MetricKey
    samples: Mapping[str, Sample] | None
    """By node name, the whole truth: a node that is not in it has no value from now on.

    None: there was no answer; what was known before stays, and ages.
    """
    problem: str = ""
    """What is wrong, for the status of policies that read it: one line that stays the same while the problem does."""
