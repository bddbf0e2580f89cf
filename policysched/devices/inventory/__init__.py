"""Devices as columns, device pools as nodes see them, and allocated devices.

Input: slices, classes, nodes and allocated claims, one change at a time. Output: groups of nodes that see the same
devices, and the log of groups that changed.
"""
