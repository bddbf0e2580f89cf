"""multipoint-communicating-plugin: Reserve leaves a note in the cycle's state, and PreBind of the same pod reads it."""

from __future__ import annotations

from dataclasses import dataclass

from policysched.plugin import Code, CycleState, Pod, Status, unschedulable

NEVER_BOUND = "my-test-pod"


@dataclass
class Note:
    """What is kept for a pod."""

    text: str

    def clone(self) -> Note:
        """Return a copy, for what-ifs."""
        return Note(self.text)


class MultipointCommunicating:
    """The plugin."""

    name = "multipoint-communicating-plugin"

    def reserve(self, state: CycleState, pod: Pod | None, node_name: str) -> Status | None:
        """Note that a pod must not be bound."""
        if pod is None:
            return Status(Code.ERROR, ("pod cannot be nil",))
        if pod.metadata.name == NEVER_BOUND:
            state.write(pod.metadata.name, Note("never bind"))
        return None

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Turn a pod away of which Reserve said so."""
        note = state.get(pod.metadata.name)
        if isinstance(note, Note) and note.text == "never bind":
            return unschedulable("pod is not permitted")
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Take the note back."""
        state.delete(pod.metadata.name)
