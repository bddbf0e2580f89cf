"""`PodResourceSeries`: /metrics/resources, what each pod of the cluster requests and may take at most.

All pods that are not finished are told of, whoever schedules them. There are several series a pod, so they are made
when somebody asks, a few pods at a time with a pause after each, and nothing is kept: the scheduler's loop shares the
interpreter with this thread. Who asks while they are being made gets the same ones.

Who creates pods decides how many series there are: a pod that states more amounts than any real one is left out, and
where all series together are too long there are none.

Source: pkg/scheduler/metrics/resources/resources.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Final

from aiohttp import web
from prometheus_client.utils import floatToGoString

from policysched.app.serving.answers import HEADERS, RefusedError
from policysched.model.objects import Pod
from policysched.model.quantity import Quantity
from policysched.model.requests import CPU, EPHEMERAL, MEMORY, pod_amounts, pod_limits

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
PORTION: Final = 25
"""Of how many pods is told in one piece, which takes about a millisecond."""
PAUSE: Final = 0.001
"""How long others have the interpreter after a piece. Units: seconds."""
MOST_AMOUNTS: Final = 1024
"""Of a pod whose containers state more requests and limits than this nothing is told."""
LARGEST: Final = 256 << 20
"""How long all series may be together. Units: bytes."""
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
        self._making: asyncio.Task[bytes] | None = None

    async def answer(self, _: web.BaseRequest) -> web.Response:
        """Answer a request.

        Raises:
            RefusedError: 503 where the series are too long.
        """
        if self._making is None:
            self._making = asyncio.create_task(self._make())
            self._making.add_done_callback(self._made)
        body = await asyncio.shield(self._making)
        return web.Response(body=body, headers={**HEADERS, "Content-Type": MEDIA})

    def _made(self, made: asyncio.Task[bytes]) -> None:
        self._making = None
        if not made.cancelled():
            made.exception()  # who asked may have gone

    async def _make(self) -> bytes:
        requests, limits = bytearray(_heading(REQUEST)), bytearray(_heading(LIMIT))
        for number, pod in enumerate(self._pods(), 1):
            if _amount_count(pod) <= MOST_AMOUNTS:
                labels = _labels(pod)
                requests += "".join(_lines(REQUEST, labels, pod_amounts(pod))).encode()
                limits += "".join(_lines(LIMIT, labels, pod_limits(pod))).encode()
            if len(requests) + len(limits) > LARGEST:
                text = f"the series of all pods are larger than {LARGEST >> 20} MiB"
                raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, text)
            if number % PORTION == 0:
                await asyncio.sleep(PAUSE)
        limits += requests
        return bytes(limits)


def _heading(name: str) -> bytes:
    return f"# HELP {name} {HEADS[name]}\n# TYPE {name} gauge\n".encode()


def _amount_count(pod: Pod) -> int:
    """Count the requests and limits that a pod states."""
    spec = pod.spec
    stated = [one.resources for one in (*spec.containers, *spec.init_containers)]
    if spec.resources is not None:
        stated.append(spec.resources)
    return len(spec.overhead) + sum(len(one.requests) + len(one.limits) for one in stated)


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
