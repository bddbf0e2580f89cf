"""The running scheduler: connection, reflectors, engine, metrics and reload wired together.

Comes in: flags and a kubeconfig. Goes out: bindings, events, statuses, until it is stopped. `run` wires them,
`object_handlers` tell the scheduler what the reflectors hear, `metrics` keeps what is counted, `garbage_collection`
keeps Python's collector from holding the loop.
"""
