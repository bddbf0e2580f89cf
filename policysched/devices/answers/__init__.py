"""Cached answers for claims of equal specs: feasible nodes, and reasons for the others.

`prepared` finds the nodes to re-evaluate. `group_outcomes` evaluates a group of nodes that see the same devices,
`single_nodes` and `group_batches` many nodes at once. `row_outcomes` stores the answer of each node.
"""
