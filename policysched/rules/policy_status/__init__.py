"""The status of a policy: generations, diagnostics, and the number of nodes that have each input.

`status` builds the status, `input_presence` counts the nodes that have an input and warns about missing ones.
"""
