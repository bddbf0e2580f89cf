"""Replay of a record: repeat its decisions and compare the results, or decide with other policies.

`replayed_state` rebuilds the cluster, `replay` compares decisions, `what_if` decides with a change. `results` and
`tables` are the output.
"""
