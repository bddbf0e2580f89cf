"""Notes about rejections of a pod by an API server because of other objects: priority classes, limit ranges, quotas.

The texts about limit ranges are the API server's.

Source: plugin/pkg/admission/{limitranger,priority}/admission.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from policysched.app.amounts import quantity
from policysched.model.admission_kinds import LIMIT_RANGES, admission_kind_of
from policysched.model.defaults import PriorityClasses
from policysched.model.objects.admission import LimitRangeItem
from policysched.model.objects.meta import ResourceList
from policysched.model.quantity import Quantity, parse
from policysched.reading.documents import metadata_of

Object = Mapping[str, Any]
_LIMITING: Final = ("LimitRange", "ResourceQuota")
REFUSED: Final = "an API server refuses the pod: "


def refusals(pod: Object, written: Object, objects: Iterable[Object], classes: PriorityClasses) -> list[str]:
    """Return the reasons why an API server would reject a new pod.

    Args:
        pod: The pod as completed by admission plugins.
        written: The pod before that.
        objects: The cluster.
        classes: The priority classes of the cluster.
    """
    metadata = metadata_of(pod)
    if metadata.get("uid"):
        return []
    namespace = metadata.get("namespace") or "default"
    notes = [REFUSED + text for text in _priority_refusals(written, classes)]
    limiting = [one for one in objects if one.get("kind") in _LIMITING]
    for one in limiting:
        if (metadata_of(one).get("namespace") or "default") != namespace:
            continue
        name = metadata_of(one).get("name")
        if one.get("kind") == "ResourceQuota":
            notes.append(f'ResourceQuota "{name}" of namespace {namespace} is not evaluated')
        elif admission_kind_of(one) is LIMIT_RANGES:
            items = LIMIT_RANGES.decode(one).spec.limits
            texts = dict.fromkeys(text for item in items for text in _limit_refusals(pod["spec"], item))
            notes += [f'{REFUSED}LimitRange "{name}": {text}' for text in texts]
    return notes


def _priority_refusals(written: Object, classes: PriorityClasses) -> Iterator[str]:
    spec = written.get("spec") or {}
    name, given = spec.get("priorityClassName"), spec.get("priority")
    chosen = classes.by_name.get(name) if name else classes.default
    value = chosen.value if chosen is not None else 0
    if given is not None and given != value and (chosen is not None or not name):
        of_class = f'the priority of PriorityClass "{name}"' if name else "the priority without a priorityClassName"
        yield f"spec.priority is {given}, but {of_class} is {value}"


def _limit_refusals(spec: Object, item: LimitRangeItem) -> Iterator[str]:
    if item.type == "Container":
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            resources = container.get("resources") or {}
            yield from _refusals_of(item, resources.get("requests") or {}, resources.get("limits") or {})
    elif item.type == "Pod":
        yield from _refusals_of(item, _of_pod(spec, "requests"), _of_pod(spec, "limits"))


def _refusals_of(item: LimitRangeItem, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    both = {"request": requests, "limit": limits}
    for bound, amounts, parts in (
        ("minimum", item.min, ("request", "limit")),
        ("maximum", item.max, ("limit", "request")),
    ):
        for name, enforced in amounts.items():
            text = f"{bound} {name} usage per {item.type} is {_shown(name, enforced)}"
            if name not in both[parts[0]]:
                yield f"{text}. No {parts[0]} is specified"
                continue
            outside = [part for part in parts if name in both[part] and _is_outside(both[part][name], enforced, bound)]
            if outside:
                yield f"{text}, but {outside[0]} is {_shown(name, both[outside[0]][name])}"
    for name, enforced in item.max_limit_request_ratio.items():
        problem = _ratio_problem(parse(requests.get(name, 0)), parse(limits.get(name, 0)), parse(enforced))
        if problem:
            yield f"{name} max limit to request ratio per {item.type} is {_shown('cpu', enforced)}, but {problem}"


def _ratio_problem(request: Quantity, limit: Quantity, enforced: Quantity) -> str:
    """Return why a container's ratio of limit to request exceeds a LimitRange; empty if the ratio is allowed."""
    if request.is_zero:
        return "no request is specified or request is 0"
    if limit.is_zero:
        return "no limit is specified or limit is 0"
    ratio = Fraction(limit.number) / Fraction(request.number)
    return f"provided ratio is {float(ratio):f}" if ratio > enforced.number else ""


def _shown(name: str, amount: Any) -> str:
    return quantity(name, parse(amount).scaled(-3 if name == "cpu" else 0))


def _is_outside(amount: Any, enforced: Any, bound: str) -> bool:
    given, limit = parse(amount), parse(enforced)
    return limit.exceeds(given) if bound == "minimum" else given.exceeds(limit)


def _of_pod(spec: Object, part: str) -> ResourceList:
    """Return the requests or limits of a pod: the pod-level amounts, otherwise the sum over the containers."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, container, part)
    sidecars: dict[str, Quantity] = {}
    peaks: list[dict[str, Quantity]] = []
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            _add(sidecars, container, part)
            _add(total, container, part)
        else:
            peaks.append(_add(dict(sidecars), container, part))
    for peak in (*peaks, sidecars):
        for name, amount in peak.items():
            total[name] = total.get(name, amount).largest(amount)
    whole = (spec.get("resources") or {}).get(part) or {}
    return {**{name: amount.text() for name, amount in total.items()}, **whole}


def _add(total: dict[str, Quantity], container: Object, part: str) -> dict[str, Quantity]:
    for name, amount in ((container.get("resources") or {}).get(part) or {}).items():
        total[name] = total.get(name, Quantity(0)).plus(parse(amount))
    return total
