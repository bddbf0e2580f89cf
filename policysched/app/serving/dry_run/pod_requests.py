"""Parsing of dry-run requests: pods, pod groups and node templates of the body, options of the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_field
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec
from msgspec.structs import replace

from policysched.app.files.new_pods import as_new
from policysched.app.files.node_templates import node_templates
from policysched.app.serving.dry_run.interface import DryRunPod
from policysched.app.serving.refused import RefusedError
from policysched.errors import UsageError
from policysched.kube.object_texts import MANAGED, without
from policysched.model.decode import ObjectError, decode_pod
from policysched.model.defaults import fill_pod, priority_classes
from policysched.model.kinds import NODES, POD_GROUPS, PODS, fill, kind_of
from policysched.model.objects import Pod, PodGroup
from policysched.model.release import Release
from policysched.reading.documents import Document, read
from policysched.reading.files import as_text
from policysched.state.pod_groups import group_key

BODY: Final = "body"
"""Name of the request's body in messages."""
LARGEST_BODY: Final = 1 << 20
"""Largest body; more is an error. Units: bytes."""
MOST_DECISIONS: Final = 16
"""Largest number of pods and pod groups that a request decides; more is an error."""
MOST_OBJECTS: Final = 256
"""Largest number of objects in a request; more is an error."""
_OPTIONS: Final = frozenset(("node", "limit", "profile", "seed"))
_SINGLE: Final = ("limit", "profile", "seed")


class Query(Protocol):
    """Interface of query parameters, each of which can occur several times."""

    def keys(self) -> Any:
        """Return the parameter names."""

    def getall(self, key: str, default: Sequence[str]) -> Sequence[str]:
        """Return the values of a parameter."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a dry-run request about the returned decision records."""

    nodes: frozenset[str] = frozenset()
    """Names of the nodes that the records contain; empty for all nodes."""
    limit: int | None = None
    """Largest number of nodes in each part of a record; None for all."""
    profile: str = ""
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class DryRunRequest:
    """The pods of a request's body."""

    pods: tuple[DryRunPod, ...]
    notes: tuple[str, ...]
    """Notes about pods that were changed, one line each."""
    is_list: bool
    """Whether the body is a list or several documents; then the answer is a list, too."""


def read_options(query: Query) -> Options:
    """Parse the query of a dry-run request into options.

    Raises:
        RefusedError: 400, a parameter is unknown, repeated or not a number.
    """
    unknown = sorted(set(query.keys()) - _OPTIONS)
    if unknown:
        raise _bad(f'unknown option "{unknown[0]:.100}"; the options are {", ".join(sorted(_OPTIONS))}')
    values = {name: query.getall(name, ()) for name in _SINGLE}
    for name, several in values.items():
        if len(several) > 1:
            raise _bad(f"{name} is set more than once")
    profile = "".join(values["profile"])
    limit, seed = _number("limit", values["limit"]), _number("seed", values["seed"])
    return Options(frozenset(query.getall("node", ())), limit, profile, seed)


def _number(name: str, values: Sequence[str]) -> int | None:
    if not values:
        return None
    [text] = values
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise _bad(f'{name}: expected a number, got "{text:.20}"')
    return int(text)


def read_pods(body: bytes, options: Options, release: Release) -> DryRunRequest:
    """Parse the pods of a body, with an API server's defaults but without admission plugins.

    Args:
        body: The body of the request.
        options: The options of the request.
        release: The Kubernetes release whose defaults apply.

    Raises:
        RefusedError: 400, the body is malformed; the text has the position.
    """
    try:
        documents = read(as_text(body, BODY).replace("\r\n", "\n"), BODY)
        decided, notes = _decisions(documents, options, release)
    except UsageError as error:
        raise _bad(str(error)) from error
    return DryRunRequest(tuple(decided), notes, len(documents) > 1 or bool(documents[0].path))


def _decisions(
    documents: Sequence[Document], options: Options, release: Release
) -> tuple[list[DryRunPod], tuple[str, ...]]:
    """Return the pods of a request body, each with its pod group's other pods and the node templates; and notes.

    Raises:
        UsageError: an object is malformed, or there are too many.
    """
    pods, templates, groups = _by_kind(documents, release)
    nodes = node_templates(templates)
    most = MOST_OBJECTS if release.generic_workload else MOST_DECISIONS
    made = [_dry_run_pod(one, options, release) for one in pods[:most]]
    decided = [one for one, _ in made]
    if release.generic_workload:
        decided = _joined(decided, dict(map(_group, groups)))
    if len(decided) > MOST_DECISIONS or len(pods) > most:
        raise UsageError(f"{BODY}: {len(pods)} pods, more than the limit of {MOST_DECISIONS} per request")
    if not decided:
        what = "a PodGroup" if groups else "node templates"
        raise UsageError(f"{BODY}: {what} without pods; send pods, too")
    if nodes and any(release.generic_workload and group_key(one.pod) for one in decided):
        raise UsageError(f"{BODY}: node templates are not evaluated for pods of pod groups")
    notes = tuple(note for _, several in made for note in several)
    return [replace_field(one, templates=nodes) for one in decided], notes


def _by_kind(documents: Iterable[Document], release: Release) -> tuple[list[Document], list[Document], list[Document]]:
    """Return the pods, the node templates and the pod groups of a body."""
    found: dict[object, list[Document]] = {NODES: [], POD_GROUPS: [], PODS: []}
    for one in documents:
        kind = kind_of(one.object)
        other = kind is NODES or (kind is POD_GROUPS and release.generic_workload)
        found[kind if other else PODS].append(one)
    return found[PODS], found[NODES], found[POD_GROUPS]


def _group(document: Document) -> tuple[str, PodGroup]:
    """Return a PodGroup of a body with its key."""
    try:
        group = POD_GROUPS.decode(fill(document.object, priority_classes(())))
    except ObjectError as error:
        raise document.refusal(error.field, error) from error
    return group.key, group


def _joined(pods: Iterable[DryRunPod], groups: Mapping[str, PodGroup]) -> list[DryRunPod]:
    """Join the pods of each pod group to one item, in the order of the groups' first pods.

    Raises:
        UsageError: the pods of a group name different schedulers.
    """
    found: dict[str, list[DryRunPod]] = {}
    for index, one in enumerate(pods):
        found.setdefault(group_key(one.pod) or str(index), []).append(one)
    made = []
    for key, (first, *others) in found.items():
        if {one.profile for one in others} - {first.profile}:
            raise UsageError(f"{BODY}: the pods of pod group {key} name different schedulers; set profile=")
        made.append(replace_field(first, others=tuple(one.pod for one in others), group=groups.get(key)))
    return made


def _dry_run_pod(document: Document, options: Options, release: Release) -> tuple[DryRunPod, tuple[str, ...]]:
    raw = document.object
    if raw["kind"] != "Pod" or raw.get("apiVersion", "v1") != "v1":
        raise document.refusal("kind", f"expected a Pod, got a {raw['kind']:.100}")
    try:
        new, notes = as_new(raw)
        spec = new.get("spec")
        stated = spec.get("schedulerName") if isinstance(spec, Mapping) else None
        filled = fill_pod(new, priority_classes(()), release)
        pod = decode_pod(filled)
    except ObjectError as error:
        raise document.refusal(error.field, error) from error
    if not (pod.metadata.name or pod.metadata.generate_name):
        raise document.refusal("metadata", "Pod has no name")
    _refuse_equal_constraints(document, pod)
    name = pod.metadata.name or pod.metadata.generate_name.rstrip("-")
    pod = replace(pod, metadata=replace(pod.metadata, name=name, uid=""))
    text = without(msgspec.json.encode(filled), MANAGED)
    return DryRunPod(pod, text, options.profile or str(stated or ""), options.seed), notes


def _refuse_equal_constraints(document: Document, pod: Pod) -> None:
    """Raise an error for spread constraints with equal topology key and action, as API servers do.

    Many would be slow.
    """
    known: set[tuple[str, str]] = set()
    for number, one in enumerate(pod.spec.topology_spread_constraints):
        key = one.topology_key, one.when_unsatisfiable
        if key in known:
            at = f"spec.topologySpreadConstraints[{number}]"
            raise document.refusal(
                at, f"{at}: two constraints have topologyKey {key[0]} and whenUnsatisfiable {key[1]}"
            )
        known.add(key)


def _bad(text: str) -> RefusedError:
    return RefusedError(HTTPStatus.BAD_REQUEST, text)
