"""DefaultPreemption: evicts pods of lower priority for a pod that fits no node.

| module | task |
|---|---|
| `evictable` | list the pods that may be evicted, with the other pods of their groups |
| `search` | find the victims on each node |
| `guards`, `budgets` | pods that policies protect, disruption budgets |
| `candidates` | choose the node, call extenders |
| `eviction` | delete the victims |
| `plugin` | extension points |

Other plugins answer through the what-if of the decision.
"""
