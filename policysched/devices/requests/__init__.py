"""What claims ask for, compiled: selectors, tolerations, capacities and constraints, and what they say of a device.

Devices that are alike in all that some claims read are one kind of device to them, and are asked about once.
"""
