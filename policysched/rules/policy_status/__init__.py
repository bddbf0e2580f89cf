"""Status of a policy: generations, diagnostics, presence of its inputs on nodes.

`status` builds the status, `input_presence` counts the nodes that have an input and warns about missing ones.
"""
