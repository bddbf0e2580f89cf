"""Tolerations of devices' taints."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.devices.requests.requirements import tolerates
from policysched.model.objects import DeviceTaint, DeviceToleration


@pytest.mark.parametrize(
    ("fields", "is_tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k", "operator": "Gt", "value": "v"}, False),
    ],
)
def test_toleration_covers_a_taint_as_in_kubernetes(fields: dict[str, Any], is_tolerated: bool) -> None:
    taint = DeviceTaint(key="k", value="v", effect="NoSchedule")
    assert tolerates(DeviceToleration(**fields), taint) is is_tolerated
