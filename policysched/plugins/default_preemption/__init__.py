"""DefaultPreemption: pods of lower priority make room for a pod that fits nowhere.

`guards` says which pods policies keep, `budgets` whose eviction disruption budgets allow. `search` finds the victims on
every node: it takes pods away and brings back those that may stay (`reprieve`), with pauses where a filter or guards
take long (`steps`: all nodes at once; `slices`: some nodes after others). `candidates` says which node costs least,
`extenders` asks extenders, `eviction` makes the requests, `plugin` puts them together. Nothing here knows other
plugins: what would fit is asked through the decision's what-if.
"""
