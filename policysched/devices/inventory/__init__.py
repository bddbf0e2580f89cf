"""Devices as columns, pools as nodes see them, and devices that claims have taken.

Input: slices, classes, nodes and allocated claims, one change at a time. Output: groups of nodes that see the same
devices, and the groups that changed.
"""
