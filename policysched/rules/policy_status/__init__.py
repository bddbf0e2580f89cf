"""The `status` of a policy's object: generations, diagnostics, and whether nodes have what it reads.

Comes in: a policy's entry in the store and the cluster. Goes out: the object's `status` and warnings about nodes.
`status` makes the status, `input_presence` counts the nodes that have an input, and warns at the places in texts that
name one which none has.
"""
