"""Pod classes: pods that scheduling cannot tell apart share one evaluation.

The key holds everything that any plugin reads of a pod, as bytes of its encoded parts: namespace, labels and the
spec without what differs between siblings for no reason (container names, volumes that hold no claim, image or disk).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import msgspec
from msgspec.structs import replace

from policysched.model.objects import Container, Pod, Volume

_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_NO_VOLUME = Volume()


def class_key(pod: Pod, extra: Callable[[Pod], Hashable] | None = None) -> Hashable:
    """Give the key of the pod's class; `extra` adds what policies read."""
    spec = pod.spec
    plain = replace(
        spec,
        containers=[_nameless(container) for container in spec.containers],
        init_containers=[_nameless(container) for container in spec.init_containers],
        volumes=[kept for kept in map(_nameless_volume, spec.volumes) if kept != _NO_VOLUME],
    )
    parts: list[Any] = [pod.metadata.namespace, pod.metadata.labels, plain]
    key = _ENCODER.encode(parts)
    return (key, extra(pod)) if extra is not None else key


def _nameless(container: Container) -> Container:
    return replace(container, name="")


def _nameless_volume(volume: Volume) -> Volume:
    return replace(volume, name="")
