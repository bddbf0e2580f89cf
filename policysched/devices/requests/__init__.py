"""Compiled claims: selectors, tolerations, capacities and constraints, with the kinds of devices that fit.

Devices that are equal in all attributes that a claim reads are of one kind.
"""
