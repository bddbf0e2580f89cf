"""Compiled claims: selectors, tolerations, capacities and constraints, and which kinds of devices are suitable.

Devices that are equal in all attributes that a claim reads are of one kind.
"""
