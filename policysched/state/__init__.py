"""The cluster as columns (kube-scheduler's cache). It knows neither plugins nor the network.

Comes in: objects, one at a time, and assumed pods. Goes out: columns with one row a node, and for each change a
`Change` (for the queue) and a note in the journal (for caches). `cluster` holds it all together; `tables` are what is
known of nodes, `placed` of the pods on them, `nominated` of those that are to come there, `volumes` of volumes and
claims, `budget_selectors` of disruption budgets; `mapped_resources` are those that device classes stand for,
`domain_sums` adds values up by domain, and `what_if` shows a row as it would be with other pods.
"""
