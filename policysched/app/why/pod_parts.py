"""Parts of a pod that filters read separately: a selector, a term, a constraint, a port, a volume.

Each part is evaluated alone by the filters that read it: if they reject a pod with only this part, the part excludes
the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from policysched.app.why.changes import (
    Edit,
    Object,
    at,
    becoming,
    containers,
    edited,
    keyed,
    less,
    requirement_text,
    term_text,
)

_AFFINITY: Final = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_VOLUME_PLUGINS: Final = frozenset(
    ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "DynamicResources")
)


@dataclass(frozen=True, slots=True)
class PodPart:
    """A part of a pod that filters read separately, with edits that isolate, remove or satisfy the part."""

    plugins: frozenset[str]
    """Names of the filters that read the part."""
    text: str
    alone: Edit
    """Edit that removes all other parts of the same kind from a pod, such as all ports except one."""
    without: Edit
    """Edit that removes this part from a pod."""
    on_node: Edit | None = None
    """Edit that makes a node satisfy the part; None if no edit does."""
    on_node_text: str = ""
    reasons: frozenset[str] | None = None
    """Reasons of the filter that concern the part; None if all do."""
    names_reason: bool = False
    """Whether the part's text includes the filter's reason."""


def parts(raw: Object) -> Iterator[PodPart]:
    """Yield the parts of a pod that filters read separately: selectors, terms, constraints, ports, volumes."""
    yield from _selectors(raw)
    yield from _node_terms(raw)
    yield from _pod_terms(raw)
    yield from _constraints(raw)
    yield from _ports(raw)
    yield from _volumes(raw)


def _selectors(raw: Object) -> Iterator[PodPart]:
    for key, value in (at(raw, "spec.nodeSelector") or {}).items():
        without_terms = edited(_AFFINITY, becoming(None))
        only = edited("spec.nodeSelector", becoming({key: value}))
        yield PodPart(
            frozenset(("NodeAffinity",)),
            f"nodeSelector {key}={value}",
            _both(without_terms, only),
            edited("spec.nodeSelector", keyed(key, None)),
            edited("metadata.labels", keyed(key, value)),
            f"label {key}={value}",
            _POD_AFFINITY,
        )


_POD_AFFINITY: Final = frozenset(("node(s) didn't match Pod's node affinity/selector", "pod affinity terms conflict"))


def _node_terms(raw: Object) -> Iterator[PodPart]:
    terms = at(raw, f"{_AFFINITY}.nodeSelectorTerms") or []
    no_selector = edited("spec.nodeSelector", becoming(None))
    plugins = frozenset(("NodeAffinity",))
    if len(terms) > 1:
        text = " or ".join(", ".join(requirement_text(one) for one in _requirements(term)) for term in terms)
        yield PodPart(
            plugins, f"node affinity {text}", no_selector, edited(_AFFINITY, becoming(None)), reasons=_POD_AFFINITY
        )
        return
    for term in terms:
        for sort in ("matchExpressions", "matchFields"):
            for one in term.get(sort) or ():
                only = edited(f"{_AFFINITY}.nodeSelectorTerms", becoming([{sort: [one]}]))
                edit, label = _labelled(one) if sort == "matchExpressions" else (None, "")
                yield PodPart(
                    plugins,
                    f"node affinity {requirement_text(one)}",
                    _both(no_selector, only),
                    edited(_AFFINITY, _less_of_term(sort, one)),
                    edit,
                    label,
                    _POD_AFFINITY,
                )


def _requirements(term: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]


def _less_of_term(sort: str, one: Any) -> Callable[[Any], Any]:
    """Return a change that removes a requirement from a required node affinity that has one term.

    An empty term is deleted, because it would match nothing.
    """

    def change(required: Any) -> Any:
        [term] = required["nodeSelectorTerms"] if required else [{}]
        kept = {**term, sort: less(one)(term.get(sort)) or []}
        return {**required, "nodeSelectorTerms": [kept]} if _requirements(kept) else None

    return change


def _labelled(one: Mapping[str, Any]) -> tuple[Edit | None, str]:
    """Return an edit of a node that sets a required label, and the edit as text."""
    key, values = str(one.get("key")), one.get("values") or [""]
    if one.get("operator") in {"In", "Exists"}:
        return edited("metadata.labels", keyed(key, str(values[0]))), f"label {key}={values[0]}"
    if one.get("operator") in {"NotIn", "DoesNotExist"}:
        return edited("metadata.labels", keyed(key, None)), f"no label {key}"
    return None, ""


def _pod_terms(raw: Object) -> Iterator[PodPart]:
    kinds = (
        ("podAffinity", "pod affinity", "node(s) didn't match pod affinity rules"),
        ("podAntiAffinity", "pod anti-affinity", "node(s) didn't match pod anti-affinity rules"),
    )
    for kind, name, reason in kinds:
        path = f"spec.affinity.{kind}.{_REQUIRED}"
        for term in at(raw, path) or ():
            others = [edited(f"spec.affinity.{one}.{_REQUIRED}", becoming(None)) for one, _, _ in kinds]
            only = edited(path, becoming([term]))
            where = f"per {term.get('topologyKey')}"
            yield PodPart(
                frozenset(("InterPodAffinity",)),
                f"{name} {term_text(term.get('labelSelector') or {})} {where}",
                _both(*others, only),
                edited(path, less(term)),
                reasons=frozenset((reason,)),
            )


def _constraints(raw: Object) -> Iterator[PodPart]:
    path = "spec.topologySpreadConstraints"
    for one in at(raw, path) or ():
        if one.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule":
            text = f"spread per {one.get('topologyKey')} within {one.get('maxSkew')}"
            yield PodPart(
                frozenset(("PodTopologySpread",)),
                f"{text} ({term_text(one.get('labelSelector') or {})})",
                edited(path, becoming([one])),
                edited(path, less(one)),
            )


def _ports(raw: Object) -> Iterator[PodPart]:
    for place, container in enumerate(at(raw, "spec.containers") or ()):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield PodPart(
                    frozenset(("NodePorts",)),
                    f"host port {port['hostPort']}/{port.get('protocol', 'TCP')}",
                    _with_ports(place, port, keeps=True),
                    _with_ports(place, port, keeps=False),
                )


def _with_ports(place: int, port: Any, *, keeps: bool) -> Edit:
    """Return an edit that removes all ports of a pod except one port, or removes only this port."""

    def change(found: Any) -> Any:
        return [
            {**one, "ports": [had for had in one.get("ports") or () if (number == place and had == port) == keeps]}
            for number, one in enumerate(found or ())
        ]

    return edited("spec.containers", change)


def _volumes(raw: Object) -> Iterator[PodPart]:
    for volume in at(raw, "spec.volumes") or ():
        claim = at(volume, "persistentVolumeClaim.claimName")
        text = f"volume {volume.get('name')}" + (f" (claim {claim})" if claim else "")
        yield PodPart(
            _VOLUME_PLUGINS,
            text,
            edited("spec.volumes", becoming([volume])),
            _both(edited("spec.volumes", less(volume)), _unmounted(volume.get("name"))),
            names_reason=True,
        )


def _unmounted(name: Any) -> Edit:
    def edit(raw: Object) -> dict[str, Any]:
        made = edited("spec", lambda spec: spec)(raw)
        for one in containers(made["spec"]):
            if one.get("volumeMounts"):
                one["volumeMounts"][:] = [mount for mount in one["volumeMounts"] if mount.get("name") != name]
        return made

    return edit


def _both(*edits: Edit) -> Edit:
    """Return an edit that applies several edits."""

    def edit(raw: Object) -> dict[str, Any]:
        made = dict(raw)
        for one in edits:
            made = one(made)
        return made

    return edit
