"""Extended resources that device classes stand for (KEP-5004): which class each of them means."""

from __future__ import annotations

from typing import Final

from policysched.model.objects import DeviceClass

_IMPLIED: Final = "deviceclass.resource.kubernetes.io/"
"""What the resource begins with that a device class has by its name."""


class MappedResources(dict[str, str]):
    """The device class of each mapped extended resource.

    A class has a resource of its own name, whatever others state; of several classes that state one resource the newest
    counts, then the first by name.
    """

    def __init__(self) -> None:
        self.generation = 0
        """Moves when a resource has another device class."""
        self._classes: set[str] = set()
        self._stating: dict[str, dict[str, str]] = {}
        """By extended resource, the classes that state it with the times of their creation."""

    def follow(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """Take a version of a device class in place of the one before; None where there is none.

        Cost: O(classes that state the same resource).
        """
        concerned = [*self._without(old), *self._with(new)]
        for resource in dict.fromkeys(concerned):
            before, found = self.get(resource), self._class_of(resource)
            if found is None:
                self.pop(resource, None)
            else:
                self[resource] = found
            self.generation += before != found

    def _without(self, old: DeviceClass | None) -> list[str]:
        """Forget a class, and name the resources that it stood for."""
        if old is None:
            return []
        name, resource = old.metadata.name, old.spec.extended_resource_name
        self._classes.discard(name)
        if not resource:
            return [_IMPLIED + name]
        stating = self._stating.get(resource, {})
        stating.pop(name, None)
        if not stating:
            self._stating.pop(resource, None)
        return [_IMPLIED + name, resource]

    def _with(self, new: DeviceClass | None) -> list[str]:
        """Take a class, and name the resources that it stands for."""
        if new is None:
            return []
        name, resource = new.metadata.name, new.spec.extended_resource_name
        self._classes.add(name)
        if not resource:
            return [_IMPLIED + name]
        self._stating.setdefault(resource, {})[name] = new.metadata.creation_timestamp or ""
        return [_IMPLIED + name, resource]

    def _class_of(self, resource: str) -> str | None:
        """Return the device class that a resource stands for."""
        own = resource.removeprefix(_IMPLIED)
        if own != resource and own in self._classes:
            return own
        stating = self._stating.get(resource)
        if not stating:
            return None
        newest = max(stating.values())
        return min(name for name, created in stating.items() if created == newest)
