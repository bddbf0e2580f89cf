"""What there is: devices in columns, pools as nodes see them, and what claims have taken of them.

Comes in: slices, classes, nodes and allocated claims, one change at a time. Goes out: groups of nodes that see the same
devices, and which groups have to be asked again. It knows nothing of what claims ask for.
"""
