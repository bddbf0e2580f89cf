"""Pod counts, aggregates and derived values that rules read beside fields of nodes, updated incrementally.

Comes in: graphs and the inputs that they read. Goes out: values on rows, and the rows that a change of them affects.
`context` evaluates graphs on rows, `pod_aggregates` counts the pods of a node and says whether something read moved,
`aggregates` sums up over nodes, `derived` names the rows that see another value, `what_if` has a row with other pods.
"""
