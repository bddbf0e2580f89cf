"""The structs of SchedulingPolicy objects, and of metric values that policies read.

Expressions are texts here; `policysched.language` parses them and `policysched.rules` compiles them. A status never
affects decisions: an unreadable one is treated as empty. The last good generation is stored in an annotation, because a
user who can write only the status must not be able to change it. Policies with the same query and node label share
metric values; unit and maximum age belong to each policy. Values are in base units (cores, bytes, seconds), because a
metrics server does not know ours.

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
API_VERSIONS: Final = ("policysched.io/v1beta1", "policysched.io/v1alpha1")
"""The API versions that are read, newest first; all have the same fields."""
API_VERSION: Final = API_VERSIONS[0]
"""The API version that is written."""
KIND: Final = "SchedulingPolicy"
PLURAL: Final = "schedulingpolicies"
LAST_GOOD: Final = "policysched.io/last-good"
"""The name of the annotation with the last generation of a policy that compiled."""
COMPRESSED: Final = "zlib:"
"""Prefix of compressed values of the last-good annotation, before base64; values without it are JSON."""
LARGEST_LAST_GOOD: Final = 3 << 20
"""Maximum size of the JSON in the last-good annotation; a larger value is rejected. Units: bytes.

The API server has the same limit for a request.
"""
MAX_ANNOTATIONS: Final = 256 << 10
"""Maximum size of all annotations of an object, including their names; the API server rejects more. Units: bytes."""

PolicyKey = NewType("PolicyKey", str)
"""The identity of a policy: its name."""
Mode = Literal["Enforce", "Shadow", "Disabled"]
Normalize = Literal["None", "Max"]
Weight = Annotated[int, Meta(ge=0, le=100)]
Tier = Annotated[int, Meta(ge=0, le=100)]
MOST_STATUS: Final = 512 * 1024
"""Maximum length of a policy status that is decoded; a longer status is treated as empty. Units: bytes."""
Expression = int | str
"""The value of a policy field that accepts a number or an expression."""


class MetricQuery(Struct, frozen=True):
    """A metric query, which expressions read as `metrics.<name>`."""

    name: str
    query: str
    node_label: str = "node"
    unit: str = "number"
    max_age: str = "2min"


class Let(Struct, frozen=True):
    """A named expression (`let`), which the rules of a policy can use."""

    name: str
    value: Expression


class FilterRule(Struct, frozen=True):
    """A condition that a node must meet; `when` restricts the rule to some pods."""

    name: str
    require: str
    when: str | None = None
    message: str | None = None


class ScoreRule(Struct, frozen=True):
    """A score for every node: the first true case, or `value`."""

    name: str
    weight: Weight = 1
    normalize: Normalize | None = None
    cases: list[str] = []
    value: Expression | None = None
    when: str | None = None


class PreemptionRule(Struct, frozen=True):
    """A condition that a pod must meet so that it can be a victim of preemption."""

    require: str
    name: str = "preemption"
    """Name of the rule in the reason for which a pod is not a victim."""
    message: str | None = None


class PlacementRules(Struct, frozen=True):
    """Rules about placements: sets of nodes on which all pods of a group are placed together."""

    topology_key: str = ""
    """Label whose values divide the nodes into placements; empty if the policy creates no placements."""
    filters: list[FilterRule] = []
    scores: list[ScoreRule] = []


class PolicySpec(Struct, frozen=True):
    """Spec of a SchedulingPolicy."""

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
    placement: PlacementRules | None = None


class PolicyCondition(Struct, frozen=True):
    """A condition of a policy."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class PolicyDiagnostic(Struct, frozen=True):
    """An error or warning about one field; line and column count from 1 within the field's text."""

    severity: str = ""
    code: str = ""
    field: str = ""
    line: int = 0
    column: int = 0
    end_column: int = 0
    message: str = ""
    help: str = ""


class PolicyCost(Struct, frozen=True):
    """The operations that evaluating a policy takes for one decision: once, per node, and per placed pod."""

    scalar: int = 0
    nodes: int = 0
    pods: int = 0


class PolicyInput(Struct, frozen=True):
    """A label, resource or metric that a policy reads, with the number of nodes that have a value for it."""

    name: str = ""
    present: int = 0
    total: int = 0
    problem: str = ""


class PolicyInstance(Struct, frozen=True):
    """The report about a policy from one installation of the scheduler."""

    name: str = ""
    active_generation: int = 0
    inputs: list[PolicyInput] = []


class PolicyStatus(Struct, frozen=True):
    """Status of a SchedulingPolicy."""

    observed_generation: int = 0
    active_generation: int = 0
    active_spec: dict[str, Any] | None = None
    rules: int = 0
    conditions: list[PolicyCondition] = []
    diagnostics: list[PolicyDiagnostic] = []
    cost: PolicyCost | None = None
    instances: list[PolicyInstance] = []


class Policy(Struct, frozen=True):
    """A SchedulingPolicy; a policy without a spec has no rules."""

    metadata: Metadata = Metadata()
    spec: PolicySpec = PolicySpec()
    status: PolicyStatus = PolicyStatus()

    @property
    def key(self) -> PolicyKey:
        """The name of the policy."""
        return PolicyKey(self.metadata.name)


class UnreadablePolicy(Policy, frozen=True):
    """A policy whose newest spec cannot be decoded; its generation in force stays in force."""

    field: str = ""
    reason: str = ""


class LastGood(Struct, frozen=True):
    """A generation of a policy that compiled, with the policy's UID, as stored in the policy's annotation."""

    uid: str
    generation: int
    spec: PolicySpec


def decode_policy(raw: bytes | Mapping[str, Any]) -> Policy:
    """Decode a policy; a status that is unreadable or too long is treated as empty.

    Raises:
        ObjectError: a field is missing or has the wrong type, or the API version of a dictionary is unknown; an API
            server returns the version that it was asked for. `field` is the path of the field.
    """
    if isinstance(raw, bytes) and len(raw) > MOST_STATUS:
        raw = _without_long_status(raw)
    if isinstance(raw, Mapping):
        _refuse_unknown_version(raw)
    try:
        return decode(Policy, KIND, raw)
    except ObjectError as error:
        if not error.field.startswith("status"):
            raise
        plain = decode(dict[str, Any], KIND, raw)
        return decode(Policy, KIND, {key: value for key, value in plain.items() if key != "status"})


def decode_watched_policy(raw: bytes | Mapping[str, Any]) -> Policy:
    """Decode a policy; if only the spec is unreadable (for example of a later version), return an UnreadablePolicy.

    Raises:
        ObjectError: the metadata cannot be decoded.
    """
    try:
        return decode_policy(raw)
    except ObjectError as error:
        if not error.field.startswith("spec"):
            raise
        plain = decode(dict[str, Any], KIND, raw)
        named = decode_policy({key: value for key, value in plain.items() if key != "spec"})
        return UnreadablePolicy(named.metadata, status=named.status, field=error.field, reason=error.reason)


def _refuse_unknown_version(raw: Mapping[str, Any]) -> None:
    version = raw.get("apiVersion") or API_VERSION
    if version not in API_VERSIONS:
        metadata = raw.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        reason = f"unknown API version {version!r:.100}; expected {' or '.join(API_VERSIONS)}"
        raise ObjectError(KIND, str(name or ""), reason, "apiVersion")


def _without_long_status(raw: bytes) -> bytes:
    """Remove a status that is too long; return the text unchanged if it cannot be split."""
    try:
        parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        return raw
    if len(bytes(parts.get("status", b""))) <= MOST_STATUS:
        return raw
    del parts["status"]
    return msgspec.json.encode(parts)


def last_good_text(policy: Policy, generation: int, spec: PolicySpec) -> str:
    """Return the value of the last-good annotation for a generation of a policy: JSON, compressed, in base64."""
    plain = msgspec.json.encode(LastGood(uid=policy.metadata.uid, generation=generation, spec=spec))
    return COMPRESSED + base64.b64encode(zlib.compress(plain, 9)).decode()


def decode_last_good(policy: Policy) -> LastGood | None:
    """Decode the last generation that compiled from a policy's annotation; None without the annotation.

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
    """Return whether a policy's annotation contains a generation as the last one that compiled."""
    try:
        return decode_last_good(policy) == LastGood(uid=policy.metadata.uid, generation=generation, spec=spec)
    except ObjectError:
        return False


def annotations_size(annotations: Mapping[str, str]) -> int:
    """Return the size of an object's annotations as the API server computes it. Units: bytes."""
    return sum(len(name.encode()) + len(text.encode()) for name, text in annotations.items())


def _decompressed(policy: Policy, text: str) -> bytes:
    """Return the JSON in a compressed value of the last-good annotation.

    Raises:
        ObjectError: the text cannot be decompressed, or is larger than LARGEST_LAST_GOOD.
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
    """The identity of a metric, independent of the name that a policy gives it."""

    query: str
    node_label: str
    """Label that contains the node's name in the series of the metric."""


class Sample(NamedTuple):
    """The value of a metric for one node."""

    value: float
    """The value, a finite number. Units: number, cores, bytes or seconds, as the policy's `unit` states."""
    at: float
    """Time of the value, never in the future. Units: seconds since 1970, UTC."""


@dataclass(frozen=True, slots=True)
class MetricAnswer:
    """The result of one query of a metric, for all nodes."""

    key: MetricKey
    samples: Mapping[str, Sample] | None
    """Values by node name; a node without an entry has no value from now on.

    None: the query failed; earlier values stay and become older.
    """
    problem: str = ""
    """Error to report in the status of policies, on one line that stays the same while the error lasts."""
