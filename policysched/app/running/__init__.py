"""The running scheduler: connection, reflectors, engine, metrics and reload wired together.

Comes in: flags and a kubeconfig. Goes out: bindings, events, statuses, until it is stopped. `process` wires them, `run`
begins and ends a process as its `run_options` say. `object_handlers` tell the scheduler what the reflectors hear,
`configuration_file` what a changed configuration says, `leadership` whether it may act. `metrics` keeps what is
counted, `garbage_collection` keeps Python's collector from holding the loop, and `watchdog` names plugins that hang.
"""
