"""The policies in force, and which generation of each policy is in force.

`store` tracks the generation in force of each policy, `policy_set` is the immutable set that is swapped between two
cycles and added to profiles.
"""
