"""The metrics of a running scheduler, under kube-scheduler's names, and those of policies.

Comes in: what the engine, the queue, bindings and requests tell observers. Goes out: collectors of Prometheus that cost
the scheduler counts and no texts, since texts are made when somebody asks.
`process_metrics` puts them together; `series` has the counters and histograms that the others keep.
"""
