"""`PodResourceSeries`: /metrics/resources, the requests and limits of each pod.

All unfinished pods are included, whatever their scheduler. There are several series per pod. They are created on
request, in chunks with pauses, and not stored, because the scheduler's loop shares the interpreter with this thread.
Concurrent requests get the same result.

Creators of pods determine the number of series. A pod with more amounts than any real one is omitted, and if all series
together are too long, the request fails.

Source: pkg/scheduler/metrics/resources/resources.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Final

from aiohttp import web
from prometheus_client.utils import floatToGoString

from policysched.app.serving.answers import HEADERS
from policysched.app.serving.refused import RefusedError
from policysched.model.objects import Pod
from policysched.model.quantity import Quantity
from policysched.model.requests import CPU, EPHEMERAL, MEMORY, pod_amounts, pod_limits

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
CHUNK: Final = 25
"""Number of pods whose series are computed before other threads run: about a millisecond of work."""
PAUSE: Final = 0.001
"""Pause after each chunk of pods, in which other threads run. Units: seconds."""
MOST_AMOUNTS: Final = 1024
"""Largest number of requests and limits of a pod; a pod with more is omitted."""
LARGEST: Final = 256 << 20
"""Largest total size of the series; more is an error. Units: bytes."""
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
    """Answers requests with the series of all pods.

    Args:
        pods: Returns the pods; called in the port's thread.
    """

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._making: asyncio.Task[bytes] | None = None

    async def answer(self, _: web.BaseRequest) -> web.Response:
        """Answer a request for /metrics/resources.

        Raises:
            RefusedError: 503 if the series are too long.
        """
        if self._making is None:
            self._making = asyncio.create_task(self._make())
            self._making.add_done_callback(self._made)
        body = await asyncio.shield(self._making)
        return web.Response(body=body, headers={**HEADERS, "Content-Type": MEDIA})

    def _made(self, made: asyncio.Task[bytes]) -> None:
        self._making = None
        if not made.cancelled():
            made.exception()  # all clients may have disconnected

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
            if number % CHUNK == 0:
                await asyncio.sleep(PAUSE)
        limits += requests
        return bytes(limits)


def _heading(name: str) -> bytes:
    return f"# HELP {name} {HEADS[name]}\n# TYPE {name} gauge\n".encode()


def _amount_count(pod: Pod) -> int:
    """Return the number of requests and limits that a pod states."""
    spec = pod.spec
    stated = [one.resources for one in (*spec.containers, *spec.init_containers)]
    if spec.resources is not None:
        stated.append(spec.resources)
    return len(spec.overhead) + sum(len(one.requests) + len(one.limits) for one in stated)


def _labels(pod: Pod) -> tuple[str, str]:
    """Return the texts of a pod's labels: before the label `resource`, and between `resource` and `unit`."""
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
    """Format a number for Prometheus; a number beyond the range of float is infinite, as in Go."""
    try:
        number = float(amount.number)
    except OverflowError:
        number = float("inf") if amount.mantissa > 0 else float("-inf")
    return str(floatToGoString(number))  # type: ignore[no-untyped-call]
