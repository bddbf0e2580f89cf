"""Replay a record: make its decisions again and compare them, or make them with other policies.

Comes in: the files of a record. Goes out: which decisions differ, or what would have been different that day.
`replayed_state` makes the cluster of a record, `replay` compares, `what_if` decides with a change; `results` and
`tables` tell.
"""
