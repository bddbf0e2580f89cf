"""The policies in force at one time, and which generation of each that is.

Comes in: objects as the API server has them. Goes out: an immutable `PolicySet` that is swapped between two cycles and
joins profiles. `store` knows which generation of each policy is in force, `policy_set` puts those in order.
"""
