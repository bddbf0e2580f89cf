"""What is known of claims of equal specs: on which nodes they can be allocated, and why not elsewhere.

Comes in: the device tables, and claims. Goes out: an answer a node, brought up to date by what moved since. `prepared`
says which nodes are to be asked again; `group_outcomes` asks a group of nodes that see the same devices,
`single_nodes` and `group_batches` ask many nodes at once; `row_outcomes` keeps what came of it for each node.
"""
