"""Metrics of a running scheduler, under kube-scheduler's names, and metrics of policies.

Observers of engine, queue, bindings and requests count events; collectors format them when `/metrics` is read.
`process_metrics` combines them, `series` has the counters and histograms.
"""
