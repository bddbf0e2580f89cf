"""`MappedResources`: which device class provides each extended resource (KEP-5004)."""

from __future__ import annotations

from typing import Final

from policysched.model.objects import DeviceClass

_IMPLIED: Final = "deviceclass.resource.kubernetes.io/"
"""Prefix of the extended resource that each device class provides under its own name."""


class MappedResources(dict[str, str]):
    """The name of the device class that provides each extended resource.

    Each class has the resource of its own name. If several classes declare a resource, the newest class applies, then
    the first by name.
    """

    def __init__(self) -> None:
        self.stamp = 0
        """A number that changes if another device class provides a resource than before."""
        self._classes: set[str] = set()
        self._stating: dict[str, dict[str, str]] = {}
        """For each extended resource: the names and creation times of the device classes that declare it."""

    def follow(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """Replace a device class by a new version; None stands for a class that did not exist or no longer exists.

        Cost: O(classes that declare the same resource).
        """
        concerned = [*self._without(old), *self._with(new)]
        for resource in dict.fromkeys(concerned):
            before, found = self.get(resource), self._class_of(resource)
            if found is None:
                self.pop(resource, None)
            else:
                self[resource] = found
            self.stamp += before != found

    def _without(self, old: DeviceClass | None) -> list[str]:
        """Remove a device class; return the extended resources that it provided."""
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
        """Add a device class; return the extended resources that it provides."""
        if new is None:
            return []
        name, resource = new.metadata.name, new.spec.extended_resource_name
        self._classes.add(name)
        if not resource:
            return [_IMPLIED + name]
        self._stating.setdefault(resource, {})[name] = new.metadata.creation_timestamp or ""
        return [_IMPLIED + name, resource]

    def _class_of(self, resource: str) -> str | None:
        """Return the name of the device class that provides an extended resource."""
        own = resource.removeprefix(_IMPLIED)
        if own != resource and own in self._classes:
            return own
        stating = self._stating.get(resource)
        if not stating:
            return None
        newest = max(stating.values())
        return min(name for name, created in stating.items() if created == newest)
