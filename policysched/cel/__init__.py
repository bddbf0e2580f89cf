"""CEL as in Kubernetes v1.36 to v1.38, for device selectors: parser, checker, evaluator.

A text compiles to a selector or to cel-go's error. A selector returns true, false or an error for each device.
It imports `model` only; `devices` and upper packages import it.
"""

from policysched.cel.device import CompiledSelector, Device, InvalidDeviceSelectorError, Variables, compile_selector

__all__ = ["CompiledSelector", "Device", "InvalidDeviceSelectorError", "Variables", "compile_selector"]
