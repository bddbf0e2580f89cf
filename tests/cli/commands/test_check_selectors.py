"""How `policysched check` shows what is wrong with a selector of devices."""

from __future__ import annotations

import json

from tests.cli.conftest import Command, Write

CLASS = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: large}
spec:
  selectors:
  - cel: {expression: device.driver == 1}
"""


def test_wrong_selector_is_shown_under_its_line(command: Command, write: Write) -> None:
    write("class.yaml", CLASS)
    done = command("check", "class.yaml")
    assert done.code == 1
    assert "error[CEL]: found no matching overload for '_==_' applied to '(string, int)'\n --> class.yaml:6:37" in (
        done.out.replace("  -->", " -->")
    )
    assert done.out.rstrip().endswith("1 device class or claim: 1 error, 0 warnings")


def test_wrong_selector_has_its_place_in_json(command: Command, write: Write) -> None:
    write("class.yaml", CLASS)
    [found] = json.loads(command("check", "-o", "json", "class.yaml").out)["items"]
    assert (found["policy"], found["code"], found["fileLine"], found["fileColumn"]) == (
        "DeviceClass/large",
        "CEL",
        6,
        37,
    )


def test_good_selector_is_no_error(command: Command, write: Write) -> None:
    write("class.yaml", CLASS.replace("1}", '"a"}'))
    done = command("check", "class.yaml")
    assert (done.code, done.out) == (0, "1 device class or claim: 0 errors, 0 warnings\n")
