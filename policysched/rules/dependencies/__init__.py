"""Values that many nodes share, kept up to date: pod counters, aggregates, domains and what is made of them.

Comes in: graphs and the inputs that they read. Goes out: values on rows, and the rows that a change of them affects.
`context` evaluates graphs on rows, `counters` counts the pods of a node and says whether something read moved,
`aggregates` sums up over nodes, `derived` names the rows that see another value, `what_if` has a row with other pods.
"""
