"""Tables of devices that took many changes say what fresh ones of the same objects say."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from policysched.devices import Allocator, DeviceTables
from policysched.model.decode import decode
from policysched.model.device_decoding import decode_devices
from policysched.model.objects import DeviceClass, ResourceClaim, ResourceSlice
from policysched.model.release import V1_36, V1_37, Release
from tests.devices.generate import Cases
from tests.devices.playing import Case, claims_of, said

STEPS = 20_000
CHANGES = 40
Json = dict[str, Any]


class World:
    """Objects that come and go, in tables that are changed along with them."""

    def __init__(self, random: Random, cases: list[Case], release: Release) -> None:
        self._random = random
        self._cases = cases
        self.tables = DeviceTables(release=release)
        self.slices: dict[str, Json] = {}
        self.classes: dict[str, Json] = {}
        self.held: dict[str, Json] = {}
        self.nodes: dict[int, tuple[str, dict[str, str]]] = {}
        for one in cases[0]["classes"]:
            self._set_class(one)

    def change(self) -> None:
        """Change one thing."""
        self._random.choice((self._slice, self._slice, self._slice, self._class, self._node, self._hold, self._hold))()

    def fresh(self) -> DeviceTables:
        """Tables of the objects that are there."""
        made = DeviceTables(release=self.tables.release)
        for one in self.slices.values():
            made.set_slice(decode(ResourceSlice, "ResourceSlice", one))
        for one in self.classes.values():
            made.set_class(decode_devices(DeviceClass, one))
        for row, (name, labels) in self.nodes.items():
            made.set_node(row, name, labels)
        for one in self.held.values():
            made.allocated.set_claim(decode_devices(ResourceClaim, one))
        return made

    def _one_of(self, field: str) -> Json:
        found: Json = self._random.choice(self._random.choice(self._cases)[field])
        return found

    def _slice(self) -> None:
        if self.slices and self._random.random() < 0.3:
            name = self._random.choice(sorted(self.slices))
            del self.slices[name]
            self.tables.remove_slice(name)
        else:
            one = self._one_of("slices")
            self.slices[one["metadata"]["name"]] = one
            self.tables.set_slice(decode(ResourceSlice, "ResourceSlice", one))

    def _class(self) -> None:
        self._set_class(self._one_of("classes"))

    def _set_class(self, one: Json) -> None:
        self.classes[one["metadata"]["name"]] = one
        self.tables.set_class(decode_devices(DeviceClass, one))

    def _node(self) -> None:
        row, name = self._random.randrange(4), f"n{self._random.randrange(4)}"
        self.nodes.pop(row, None)
        self.tables.remove_node(row)
        if all(name != known for known, _ in self.nodes.values()):
            labels = {"zone": self._random.choice(("z0", "z1")), "name": name}
            self.nodes[row] = (name, labels)
            self.tables.set_node(row, name, labels)

    def _hold(self) -> None:
        uid = f"held-{self._random.randrange(4)}"
        if uid in self.held and self._random.random() < 0.5:
            del self.held[uid]
            self.tables.allocated.remove_claim(uid)
        else:
            one = self._one_of("allocated")
            self.held[uid] = {**one, "metadata": {"name": uid, "uid": uid}}
            self.tables.allocated.set_claim(decode_devices(ResourceClaim, self.held[uid]))


@pytest.mark.parametrize("seed", range(25))
def test_tables_after_many_changes_answer_as_fresh_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:  # ask about nodes as a whole, however few they are
        monkeypatch.setattr("policysched.devices.answers.prepared._MANY", -1)
        monkeypatch.setattr("policysched.devices.answers.row_outcomes._FEW_ROWS", -1)
    if seed % 3:  # look at pools as their slices come, not at the next question
        monkeypatch.setattr("policysched.devices.inventory.tables._MOST_CHANGED", 0)
    random = Random(seed)
    cases = Cases(random)
    drawn: list[Case] = [cases.case() for _ in range(4)]
    world = World(random, drawn, (V1_36, V1_37)[seed // 6 % 2])
    asked = [claims_of(one) for one in drawn[:2]]
    for _ in range(CHANGES):
        world.change()
        if random.random() < 0.5:
            continue
        fresh = world.fresh()
        for claims in asked:
            kept, new = (Allocator(one, claims, steps=STEPS) for one in (world.tables, fresh))
            answers, expected = kept.answers(), new.answers()
            for row in world.nodes:
                assert answers.codes[row] == expected.codes[row], (seed, row)
                assert str(answers.error(row)) == str(expected.error(row)), (seed, row)
                assert said(kept, row) == said(new, row), (seed, row)
