"""Recording of the decisions of a running scheduler, with the cluster states that led to the decisions.

`recorded_cluster` and `recorder` observe changes and decisions, `entries` has the entries of a record, `writer` writes
them in its own thread in the `file_format`.
"""
