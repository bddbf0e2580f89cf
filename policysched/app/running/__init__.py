"""The scheduler process: connection, watches, engine, metrics and reload.

`run` starts and ends a process according to `run_options`, `process` connects its parts. `object_handlers` pass watched
objects to the scheduler, `configuration_file` reloads the configuration, `leadership` holds the lease. `metrics` are
the metrics, `garbage_collection` keeps Python's collections
short, `freed_memory` returns memory to the system, `watchdog` logs plugins that hang.
"""
