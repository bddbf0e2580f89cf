"""CEL as of Kubernetes v1.36, the language of device selectors: texts → checked expressions → verdicts with errors.

Comes in: the text of a selector, and devices as attributes and capacities. Goes out: why a text is refused, with
cel-go's words and place, or a compiled selector that says true, false or an error of each device. It knows the language
and its libraries as Kubernetes v1.36 has them, and neither claims nor nodes.
"""

from policysched.cel.device import CompiledSelector, Device, InvalidDeviceSelectorError, Variables, compile_selector

__all__ = ["CompiledSelector", "Device", "InvalidDeviceSelectorError", "Variables", "compile_selector"]
