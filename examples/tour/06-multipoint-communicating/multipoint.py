"""multipoint-communicating-plugin: Reserve writes a note into the cycle state, PreBind reads it."""

from __future__ import annotations

from dataclasses import dataclass

from policysched.plugin import Code, CycleState, Pod, PreBindMethods, ReserveMethods, Status, unschedulable

NEVER_BOUND = "my-test-pod"


@dataclass
class Note:
    """A value in the cycle state."""

    text: str

    def clone(self) -> Note:
        """Return a copy; preemption clones the cycle state."""
        return Note(self.text)


class MultipointCommunicating(ReserveMethods, PreBindMethods):
    """Rejects one pod at PreBind."""

    name = "multipoint-communicating-plugin"

    def reserve(self, state: CycleState, pod: Pod | None, node_name: str) -> Status | None:
        """Write a note for a pod that must not be bound."""
        if pod is None:
            return Status(Code.ERROR, ("pod cannot be nil",))
        if pod.metadata.name == NEVER_BOUND:
            state.write(pod.metadata.name, Note("never bind"))
        return None

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Reject a pod with a note."""
        note = state.get(pod.metadata.name)
        if isinstance(note, Note) and note.text == "never bind":
            return unschedulable("pod is not permitted")
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Delete the note."""
        state.delete(pod.metadata.name)
