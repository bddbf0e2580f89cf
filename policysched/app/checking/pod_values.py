"""Validation of the values that scheduling reads in a pod's spec.

The messages are the API server's. The sandbox's rules check names, images, restart policies and tolerations.

Source: pkg/apis/core/validation/validation.go, v1.36.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from policysched.apimachinery.errors import Cause, required, unsupported, wrong
from policysched.app.amounts import canonical
from policysched.model.quantity import Quantity, QuantityError, parse
from policysched.model.selection.name_validation import is_huge_page_resource

Object = Mapping[str, Any]
_PORTS: Final = range(1, 65536)
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_POD_LEVEL: Final = ("cpu", "memory")
_STANDARD: Final = ("cpu", "memory", "ephemeral-storage")
_WHEN: Final = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION: Final = ("Honor", "Ignore")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_ORDERED: Final = ("Gt", "Lt")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WHOLE: Final = re.compile(r"[-+]?\d+")
_WEIGHTS: Final = range(1, 101)


def pod_value_faults(spec: Object, path: str) -> Iterator[Cause]:
    """Yield the invalid values of a pod's spec whose fields have the right types.

    Args:
        spec: The spec.
        path: Path of the spec in the object.
    """
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            place = f"{path}.{kind}[{index}]"
            yield from _resource_faults(container.get("resources") or {}, f"{place}.resources")
            for number, port in enumerate(container.get("ports") or ()):
                yield from _port_faults(port, f"{place}.ports[{number}]", is_on_host=bool(spec.get("hostNetwork")))
        for ports in _ports_together(spec, kind, path):
            yield from _repeated_port_faults(ports)
    yield from _pod_resource_faults(spec, f"{path}.resources")
    pairs: set[tuple[Any, Any]] = set()
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        yield from _spread_faults(constraint, f"{path}.topologySpreadConstraints[{index}]", pairs)
    yield from _affinity_faults(spec.get("affinity") or {}, f"{path}.affinity")


def _resource_faults(resources: Object, path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _amount_faults(name, amount, f"{path}.{part}.{name}")
    for name, amount in requests.items():
        asked, limit = _quantity(amount), _quantity(limits.get(name))
        if asked is not None and limit is not None:
            texts = canonical(asked, amount), canonical(limit, limits[name])
            yield from _limit_faults(name, asked, limit, texts, path)
        elif name not in limits and ("/" in name or is_huge_page_resource(name)):
            yield required(f"{path}.limits.{name}", "Limit must be set for non overcommitable resources")


def _pod_resource_faults(spec: Object, path: str) -> Iterator[Cause]:
    """Validate the pod-level requests and limits."""
    resources = spec.get("resources") or {}
    for part in ("limits", "requests"):
        for name in resources.get(part) or ():
            if name not in _POD_LEVEL and not is_huge_page_resource(name):
                yield unsupported(f"{path}.{part}.{name}", name, (*_POD_LEVEL, "hugepages-"))
    yield from _resource_faults(resources, path)
    yield from _faults_of_parts(resources, spec, path)


def _faults_of_parts(resources: Object, spec: Object, path: str) -> Iterator[Cause]:
    """Yield errors of containers' requests and limits that contradict the pod-level requests and limits."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    containers = [one.get("resources") or {} for one in spec.get("containers") or ()]
    for name, whole in _quantities(requests):
        total = functools.reduce(Quantity.plus, _amounts(containers, "requests", name), Quantity(0))
        if total.exceeds(whole):
            text = (
                f"must be greater than or equal to aggregate container requests of {canonical(total, requests[name])}"
            )
            yield wrong(f"{path}.requests.{name}", canonical(whole, requests[name]), text)
    for name, whole in _quantities(limits):
        for index, one in enumerate(containers):
            for limit in _amounts([one], "limits", name):
                if limit.exceeds(whole):
                    place = f"{path.removesuffix('.resources')}.containers[{index}].resources.limits.{name}"
                    texts = [canonical(amount, limits[name]) for amount in (limit, whole)]
                    yield wrong(place, texts[0], f"must be less than or equal to pod limits of {texts[1]}")


def _quantities(amounts: Object) -> Iterator[tuple[str, Quantity]]:
    """Yield the well-formed quantities of resources, each with the resource's name."""
    for name, amount in amounts.items():
        quantity = _quantity(amount)
        if quantity is not None:
            yield name, quantity


def _amounts(containers: Iterable[Object], part: str, name: str) -> Iterator[Quantity]:
    """Yield the well-formed requests or limits of containers for one resource."""
    for one in containers:
        yield from (amount for key, amount in _quantities(one.get(part) or {}) if key == name)


def _limit_faults(name: str, request: Quantity, limit: Quantity, texts: tuple[str, str], path: str) -> Iterator[Cause]:
    text = f"{name} limit of {texts[1]}"
    if request.exceeds(limit):
        yield wrong(f"{path}.requests.{name}", texts[0], f"must be less than or equal to {text}")
    elif name not in _STANDARD and not request.equals(limit):
        yield wrong(f"{path}.requests.{name}", texts[0], f"must be equal to {text}")


def _amount_faults(name: str, amount: Any, path: str) -> Iterator[Cause]:
    quantity = _quantity(amount)
    if name not in _STANDARD and "/" not in name and not is_huge_page_resource(name):
        yield wrong(path, name, "must be a standard resource for containers, or have a domain as in nvidia.com/gpu")
    elif quantity is not None and quantity.mantissa < 0:
        yield wrong(path, str(amount), "must be greater than or equal to 0")
    elif quantity is not None and name not in _STANDARD and quantity.number.denominator != 1:
        yield wrong(path, str(amount), "must be an integer")


def _quantity(amount: Any) -> Quantity | None:
    if amount is None:
        return None
    try:
        return parse(amount)
    except QuantityError:
        return None


def _ports_together(spec: Object, kind: str, path: str) -> Iterator[list[tuple[str, Object]]]:
    """Yield lists of ports that are open at the same time: the ports of each init container, of all containers."""
    found = [
        [(f"{path}.{kind}[{index}].ports[{number}]", port) for number, port in enumerate(container.get("ports") or ())]
        for index, container in enumerate(spec.get(kind) or ())
    ]
    yield from found if kind == "initContainers" else [list(itertools.chain.from_iterable(found))]


def _repeated_port_faults(ports: Iterable[tuple[str, Object]]) -> Iterator[Cause]:
    seen: set[str] = set()
    for path, port in ports:
        if not port.get("hostPort"):
            continue
        text = f"{port.get('protocol', 'TCP')}/{port.get('hostIP', '')}/{port['hostPort']}"
        if text in seen:
            yield Cause(f"{path}.hostPort", "FieldValueDuplicate", f'Duplicate value: "{text}"')
        seen.add(text)


def _port_faults(port: Object, path: str, *, is_on_host: bool) -> Iterator[Cause]:
    inner, outer = port.get("containerPort") or 0, port.get("hostPort") or 0
    if inner == 0:
        yield required(f"{path}.containerPort")
    elif inner not in _PORTS:
        yield wrong(f"{path}.containerPort", inner, "must be between 1 and 65535, inclusive")
    if outer and outer not in _PORTS:
        yield wrong(f"{path}.hostPort", outer, "must be between 1 and 65535, inclusive")
    elif outer and is_on_host and outer != inner:
        yield wrong(f"{path}.hostPort", outer, "must match `containerPort` when `hostNetwork` is true")
    if port.get("protocol", "TCP") not in _PROTOCOLS:
        yield unsupported(f"{path}.protocol", port["protocol"], _PROTOCOLS)


def _spread_faults(constraint: Object, path: str, pairs: set[tuple[Any, Any]]) -> Iterator[Cause]:
    skew, when, domains = (constraint.get(name) for name in ("maxSkew", "whenUnsatisfiable", "minDomains"))
    if not isinstance(skew, int) or skew <= 0:
        yield wrong(f"{path}.maxSkew", skew or 0, "must be greater than zero")
    if not constraint.get("topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    if when not in _WHEN:
        yield unsupported(f"{path}.whenUnsatisfiable", when or "", _WHEN)
    if domains is not None and domains <= 0:
        yield wrong(f"{path}.minDomains", domains, "must be greater than zero")
    elif domains is not None and when == "ScheduleAnyway":
        text = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        yield wrong(f"{path}.minDomains", domains, text)
    yield from _selector_faults(constraint.get("labelSelector"), f"{path}.labelSelector")
    yield from _spread_choice_faults(constraint, path, pairs)


def _spread_choice_faults(constraint: Object, path: str, pairs: set[tuple[Any, Any]]) -> Iterator[Cause]:
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(name) is not None and constraint[name] not in _INCLUSION:
            yield unsupported(f"{path}.{name}", constraint[name], _INCLUSION)
    pair = (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"))
    if pair in pairs:
        yield Cause(f"{path}.topologyKey", "FieldValueDuplicate", f'Duplicate value: "{{{pair[0]}, {pair[1]}}}"')
    pairs.add(pair)


def _affinity_faults(affinity: Object, path: str) -> Iterator[Cause]:
    node, place = affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity"
    terms = (node.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    if node.get(_REQUIRED) is not None and not terms:
        yield required(f"{place}.{_REQUIRED}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from _node_term_faults(term, f"{place}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, one in enumerate(node.get(_PREFERRED) or ()):
        yield from _weight_faults(one, f"{place}.{_PREFERRED}[{index}]")
        yield from _node_term_faults(one.get("preference") or {}, f"{place}.{_PREFERRED}[{index}].preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        pod, place = affinity.get(kind) or {}, f"{path}.{kind}"
        for index, term in enumerate(pod.get(_REQUIRED) or ()):
            yield from _pod_term_faults(term, f"{place}.{_REQUIRED}[{index}]")
        for index, one in enumerate(pod.get(_PREFERRED) or ()):
            yield from _weight_faults(one, f"{place}.{_PREFERRED}[{index}]")
            term = one.get("podAffinityTerm") or {}
            yield from _pod_term_faults(term, f"{place}.{_PREFERRED}[{index}].podAffinityTerm")


def _weight_faults(preference: Object, path: str) -> Iterator[Cause]:
    weight = preference.get("weight") or 0
    if weight not in _WEIGHTS:
        yield wrong(f"{path}.weight", weight, "must be in the range 1-100")


def _node_term_faults(term: Object, path: str) -> Iterator[Cause]:
    for index, one in enumerate(term.get("matchExpressions") or ()):
        yield from _requirement_faults(one, f"{path}.matchExpressions[{index}]", (*_OPERATORS, *_ORDERED))


def _pod_term_faults(term: Object, path: str) -> Iterator[Cause]:
    if not term.get("topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    for name in ("labelSelector", "namespaceSelector"):
        yield from _selector_faults(term.get(name), f"{path}.{name}")


def _selector_faults(selector: Any, path: str) -> Iterator[Cause]:
    for index, one in enumerate((selector or {}).get("matchExpressions") or ()):
        yield from _requirement_faults(one, f"{path}.matchExpressions[{index}]", _OPERATORS)


def _requirement_faults(one: Object, path: str, operators: tuple[str, ...]) -> Iterator[Cause]:
    operator, values = one.get("operator") or "", list(one.get("values") or ())
    if not one.get("key"):
        yield required(f"{path}.key")
    if operator not in operators:
        yield unsupported(f"{path}.operator", operator, operators)
    elif operator in ("In", "NotIn") and not values:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield Cause(f"{path}.values", "FieldValueForbidden", f"Forbidden: {text}")
    elif operator in _ORDERED and (len(values) != 1 or not _WHOLE.fullmatch(str(values[0]))):
        yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
