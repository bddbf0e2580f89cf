"""The device that most tests ask about."""

from __future__ import annotations

from policysched.cel import Device, InvalidDeviceSelectorError, Variables, compile_selector

DEVICE = Device(
    driver="dra.example.com",
    attributes={
        "s": {"string": "abc"},
        "i": {"int": 5},
        "b": {"bool": True},
        "v": {"version": "1.2.3"},
        "x.y/z": {"string": "q"},
    },
    capacity={"mem": "10Gi"},
)


def says(text: str, device: Device = DEVICE) -> bool | str:
    """Return the verdict about a device, or why there is none."""
    try:
        return compile_selector(text).matches(Variables(device))
    except InvalidDeviceSelectorError as error:
        return str(error)
