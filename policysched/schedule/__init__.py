"""The scheduler: queue, scheduling cycle, binding cycle, reload.

`scheduler` applies changes and pops pods from `queue`; `attempts` tries a pod with `cycle`; `binding` binds it.
`reload` compiles and swaps policies, `pod_status_writes` writes conditions and nominations, `observer` and `timing`
are hooks.
It uses a `Client` of the framework, not the network. `kube`, `app` and upper packages may import it.
"""
