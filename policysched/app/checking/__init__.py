"""What is wrong with policies before they reach a cluster, and what a code means.

Comes in: objects of files, and nodes to check against. Goes out: findings with code, place and help. `check` compiles
as the scheduler does, `shape` says what `kubectl apply` would refuse, `explain` tells a code at length.
"""
