"""Scheduling: the cycle, the queue, bindings and reload. It knows a `Client`, not the network.

Comes in: changes of the cluster and of policies. Goes out: bindings, conditions, events, statuses of policies.
`scheduler` applies changes and pops one pod after another: `queue` says which is next, `attempts` tries it: `cycle`
decides where it goes, `binding` takes it there. `reload` compiles policies and swaps them in, `pod_status_writes`
writes conditions and nominations of pods, `observer` and `timing` are the hooks for whoever wants to hear of all that.
"""
