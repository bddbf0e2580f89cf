"""Static checks of policies before they reach a cluster, and explanations of error codes.

Comes in: objects of files, and nodes to check against. Goes out: findings with code, place and help. `check` compiles
as the scheduler does, `schema` says what `kubectl apply` would refuse, `explain` has the long text of each code.
"""
