"""Status of a policy: generations, diagnostics, and on how many nodes each input exists.

`status` builds the status, `input_presence` counts the nodes that have an input and warns about missing ones.
"""
