"""Record what a running scheduler decides, and from what.

Comes in: the changes of the cluster and the decisions of a scheduler. Goes out: files that replay alone.
`recorded_cluster` and `recorder` hear of both, `entries` says what is kept of them, `writer` writes it in a thread of
its own, in the `file_format`.
"""
