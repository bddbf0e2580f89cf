"""The cluster as arrays over nodes: nodes, placed pods, volumes, and the journal of changes.

| package or module | contents |
|---|---|
| `cluster` | the whole; takes objects and assumed pods |
| `tables` | nodes |
| `placed`, `nominated` | placed and nominated pods |
| `volumes` | volumes and claims |
| `object_selectors` | selectors of budgets and claims |
| `mapped_resources` | extended resources of device classes |
| `domain_sums` | sums by topology domain |
| `what_if` | a row with other pods |

It imports `devices` and lower packages; `framework` and upper packages import it.
"""
