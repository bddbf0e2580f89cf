"""The validating webhook: reject SchedulingPolicies that do not compile when they are applied.

It runs in its own process with its own rights. The scheduler does not depend on it.
"""
