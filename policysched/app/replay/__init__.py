"""Decide what a scheduler recorded again, or with other policies.

Comes in: the files of a record. Goes out: which decisions differ, or what would have been different that day.
`replayed_state` makes the cluster of a record, `replay` compares, `what_if` decides with a change; `results` and
`tables` tell. `snapshot` writes a running cluster as a file that the other commands read.
"""
