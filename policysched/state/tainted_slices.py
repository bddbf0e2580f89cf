"""`TaintedSlices`: ResourceSlices with the taints that DeviceTaintRules add to their devices.

Source: k8s.io/dynamic-resource-allocation v0.37 resourceslice/tracker/tracker.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from policysched.model.objects import (
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceSlice,
    ResourceSliceSpec,
    SliceDevice,
)


class TaintedSlices:
    """The ResourceSlices to whose devices DeviceTaintRules add taints.

    Args:
        slices: The slices as drivers publish them, by name.
        rules: The rules by name.
        rules_apply: Whether rules taint devices; otherwise every slice stays as published.
    """

    def __init__(
        self, slices: Mapping[str, ResourceSlice], rules: Mapping[str, DeviceTaintRule], *, rules_apply: bool
    ) -> None:
        self._slices = slices
        self._rules = rules if rules_apply else {}
        self._rules_apply = rules_apply
        self._tainted: dict[str, ResourceSlice] = {}

    def tainted(self, one: ResourceSlice) -> ResourceSlice:
        """Return a published ResourceSlice with the taints that DeviceTaintRules add; store it if any are added."""
        name, spec = one.metadata.name, one.spec
        rules = [rule for rule in self._rules.values() if _reaches(rule.spec.device_selector, spec)]
        if not rules:
            self._tainted.pop(name, None)
            return one
        made = replace(one, spec=replace(spec, devices=tuple([_tainted(device, rules) for device in spec.devices])))
        self._tainted[name] = made
        return made

    def forget(self, name: str) -> None:
        """Forget a ResourceSlice that was deleted."""
        self._tainted.pop(name, None)

    def follow(
        self, old: DeviceTaintRule | None, new: DeviceTaintRule | None
    ) -> list[tuple[ResourceSlice, ResourceSlice]]:
        """Return the ResourceSlices whose taints differ after a change of a DeviceTaintRule, as pairs (before, after).

        Cost: O(slices), and O(devices) for the slices that the rule selects.

        Args:
            old: The rule before the change, None if it was added.
            new: The rule after the change, None if it was deleted.
        """
        if not self._rules_apply:
            return []
        selectors = [rule.spec.device_selector for rule in (old, new) if rule is not None]
        reached = [one for one in self._slices.values() if any(_reaches(each, one.spec) for each in selectors)]
        pairs = [(self._tainted.get(one.metadata.name, one), self.tainted(one)) for one in reached]
        return [(before, after) for before, after in pairs if before.spec != after.spec]


def _reaches(selector: DeviceTaintSelector | None, spec: ResourceSliceSpec) -> bool:
    """Return whether a DeviceTaintRule's selector can match devices of a slice; no selector matches none."""
    return selector is not None and selector.driver in (None, spec.driver) and selector.pool in (None, spec.pool.name)


def _tainted(device: SliceDevice, rules: Sequence[DeviceTaintRule]) -> SliceDevice:
    """Return a device with the taints that DeviceTaintRules add; driver and pool of the rules must match already."""
    specs = [rule.spec for rule in rules]
    added = [one.taint for one in specs if one.device_selector and one.device_selector.device in (None, device.name)]
    return replace(device, taints=(*device.taints, *added)) if added else device
