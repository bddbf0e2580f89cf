"""Record the decisions of a running scheduler, with the cluster state that led to them.

`recorded_cluster` and `recorder` observe changes and decisions, `entries` has the entries of a record, `writer` writes
them in its own thread in the `file_format`.
"""
