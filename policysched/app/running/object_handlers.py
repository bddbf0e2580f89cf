"""Handlers of watched objects, which pass usable objects to the scheduler or the policy reloader."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from policysched.framework import Clock, Event
from policysched.kube.client import KubeClient
from policysched.kube.object_cache import HasMetadata, LeftOutObjects, no_memory_for
from policysched.model.decode import ObjectError
from policysched.model.objects import Metadata, Pod, PodSpec
from policysched.model.policy import Policy, PolicyKey
from policysched.reading.lenient_json import shallow
from policysched.schedule.reload import Reloader
from policysched.schedule.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class ObjectHandler:
    """Passes watched objects of any kind to the scheduler; passes a new list as additions, updates and deletions.

    An object whose processing fails is removed, including its previous version, so the state is that of the other
    objects. Missing memory is not the fault of an object: then nothing is left out and the process ends.

    Raises:
        OutOfMemoryError: no memory is left; raised by each method.
    """

    scheduler: Scheduler
    left_out: LeftOutObjects

    def replace(self, changed: Sequence[HasMetadata], gone: Sequence[HasMetadata]) -> None:
        """Apply the changes that a new list shows, deletions first, so that new objects can reuse names."""
        for obj in gone:
            self.delete(obj)
        for obj in changed:
            self.upsert(obj)

    def upsert(self, obj: HasMetadata) -> None:
        """Add or update an object."""
        try:
            self.scheduler.take(obj)
        except MemoryError as error:
            raise no_memory_for(type(obj).__name__) from error
        except Exception as error:
            self.left_out.failed(type(obj).__name__, obj, error)
            self.delete(obj)

    def delete(self, obj: HasMetadata) -> None:
        """Delete an object."""
        try:
            self.scheduler.drop(obj)
        except MemoryError as error:
            raise no_memory_for(type(obj).__name__) from error
        except Exception as error:
            self.left_out.failed(type(obj).__name__, obj, error)


class PolicyHandler:
    """Collects policies until the scheduler starts, then passes them to the reloader."""

    def __init__(self, reloader: Reloader) -> None:
        self._reloader = reloader
        self._listed: dict[PolicyKey, Policy] | None = {}
        self._in_force = False
        self.received = asyncio.Event()
        """Event that is set when a watch reports a policy."""

    async def start(self) -> None:
        """Put the listed policies in force; later changes are passed to the reloader."""
        if self._listed is not None:
            listed, self._listed = self._listed, None
            await self._reloader.start(listed.values())
        self._in_force = True

    def problem(self) -> str:
        """Return why no pod is scheduled yet, empty if pods are scheduled; thread-safe."""
        return "" if self._in_force else "the policies are not in force yet"

    def replace(self, changed: Sequence[Policy], gone: Sequence[Policy]) -> None:
        """Apply the changes of policies that a new list shows."""
        for policy in gone:
            self.delete(policy)
        for policy in changed:
            self.upsert(policy)

    def upsert(self, policy: Policy) -> None:
        """Add or update a policy."""
        self.received.set()
        if self._listed is not None:
            self._listed[policy.key] = policy
        else:
            self._reloader.upsert(policy)

    def delete(self, policy: Policy) -> None:
        """Delete a policy."""
        if self._listed is not None:
            self._listed.pop(policy.key, None)
        else:
            self._reloader.delete(policy.key)


class _MalformedSpec(msgspec.Struct, rename="camel"):
    scheduler_name: str = ""
    node_name: str = ""


class _MalformedPod(msgspec.Struct):
    metadata: Metadata
    spec: _MalformedSpec = msgspec.field(default_factory=_MalformedSpec)


@dataclass(frozen=True, slots=True)
class MalformedPods:
    """Reports, as event and condition of a malformed pending pod, why the pod is not scheduled."""

    client: KubeClient
    clock: Clock
    scheduler_names: frozenset[str]
    left_out: LeftOutObjects

    def __call__(self, error: ObjectError, raw: bytes) -> None:
        """Report a malformed pod once per version."""
        self.left_out.malformed(error, raw)
        try:
            peek = msgspec.json.decode(shallow(raw), type=_MalformedPod)
        except (msgspec.MsgspecError, UnicodeError):
            return
        if peek.spec.node_name or peek.spec.scheduler_name not in self.scheduler_names:
            return
        pod = Pod(metadata=peek.metadata, spec=PodSpec(scheduler_name=peek.spec.scheduler_name))
        note = f"the pod cannot be read: {error}"
        self.client.record(Event(pod, "Warning", "FailedScheduling", "Scheduling", note, self.clock.now()))
