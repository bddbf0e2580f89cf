"""DefaultPreemption: pods of lower priority make room for a pod that fits nowhere.

`guards` says which pods policies keep, `budgets` whose eviction disruption budgets allow, `search` finds the victims on
every node, `slices` does so with pauses where a filter or guards take long, `candidates` which node
costs least, `extending` asks extenders, `eviction` makes the requests, `plugin` puts them together. Nothing here knows
other plugins: what would fit is asked through the decision's what-if.
"""
