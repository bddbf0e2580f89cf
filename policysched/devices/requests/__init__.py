"""Compiled claims: selectors, tolerations, capacities, constraints, and their verdicts on devices.

Devices that are equal in all attributes that a claim reads share one verdict.
"""
