"""`PodResourceSeries`: /metrics/resources, what each pod of the cluster requests and may take at most.

All pods that are not finished are told of, whoever schedules them. There are several series a pod, so they are made
when somebody asks, a few pods at a time with a pause after each, and nothing is kept: the scheduler's loop shares the
interpreter with this thread. Who asks while they are being made gets the same ones.

Source: pkg/scheduler/metrics/resources/resources.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from aiohttp import web
from prometheus_client.utils import floatToGoString

from policysched.app.serving.answers import text_answer
from policysched.model.objects import Pod
from policysched.model.quantity import Quantity
from policysched.model.requests import CPU, EPHEMERAL, MEMORY, pod_amounts, pod_limits

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
PORTION: Final = 25
"""Of how many pods is told in one piece, which takes about a millisecond."""
PAUSE: Final = 0.001
"""How long others have the interpreter after a piece. Units: seconds."""
REQUEST, LIMIT = "kube_pod_resource_request", "kube_pod_resource_limit"
_TEXT: Final = (
    "This shows the resource usage the scheduler and kubelet expect per pod for resources along with the unit for the "
    "resource if any."
)
HEADS: Final = {
    REQUEST: f"[STABLE] Resources requested by workloads on the cluster, broken down by pod. {_TEXT}",
    LIMIT: f"[STABLE] Resources limit for workloads on the cluster, broken down by pod. {_TEXT}",
}
_UNITS: Final = {CPU: "cores", MEMORY: "bytes", "storage": "bytes", EPHEMERAL: "bytes"}
_UNITS_BY_PREFIX: Final = {"hugepages-": "bytes", "attachable-volumes-": "integer"}
_ESCAPED: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})
Pods = Callable[[], Iterable[Pod]]


class PodResourceSeries:
    """Answers with the series of all pods.

    Args:
        pods: Gives those that are there; asked in the port's thread.
    """

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._making: asyncio.Task[str] | None = None

    async def answer(self, _: web.BaseRequest) -> web.Response:
        """Answer a request."""
        if self._making is None:
            self._making = asyncio.create_task(self._make())
            self._making.add_done_callback(self._made)
        return text_answer(await asyncio.shield(self._making), media=MEDIA)

    def _made(self, _: asyncio.Task[str]) -> None:
        self._making = None

    async def _make(self) -> str:
        requests, limits = _heading(REQUEST), _heading(LIMIT)
        for number, pod in enumerate(self._pods(), 1):
            labels = _labels(pod)
            requests += _lines(REQUEST, labels, pod_amounts(pod))
            limits += _lines(LIMIT, labels, pod_limits(pod))
            if number % PORTION == 0:
                await asyncio.sleep(PAUSE)
        return "".join((*limits, *requests))


def _heading(name: str) -> list[str]:
    return [f"# HELP {name} {HEADS[name]}\n# TYPE {name} gauge\n"]


def _labels(pod: Pod) -> tuple[str, str]:
    """Write a pod's labels: those before the resource, and those between it and its unit."""
    metadata, spec = pod.metadata, pod.spec
    priority = "" if spec.priority is None else spec.priority
    return (
        f'{{namespace="{_escape(metadata.namespace)}",node="{_escape(spec.node_name)}",'
        f'pod="{_escape(metadata.name)}",priority="{priority}",resource="',
        f'",scheduler="{_escape(spec.scheduler_name)}",unit="',
    )


def _lines(name: str, labels: tuple[str, str], amounts: Mapping[str, Quantity]) -> Iterator[str]:
    before, after = labels
    for resource, amount in sorted(amounts.items()):
        if not amount.is_zero:
            yield f'{name}{before}{_escape(resource)}{after}{_unit(resource)}"}} {_number(amount)}\n'


def _unit(resource: str) -> str:
    known = _UNITS.get(resource)
    if known is not None:
        return known
    return next((unit for prefix, unit in _UNITS_BY_PREFIX.items() if resource.startswith(prefix)), "")


def _escape(text: str) -> str:
    return text.translate(_ESCAPED)


def _number(amount: Quantity) -> str:
    """Write a number as Prometheus reads it; one that no float holds is infinite, as Go's approximation."""
    try:
        number = float(amount.number)
    except OverflowError:
        number = float("inf") if amount.mantissa > 0 else float("-inf")
    return str(floatToGoString(number))  # type: ignore[no-untyped-call]
