"""kube-scheduler, a null scheduler and policysched on a real API server.

`python -m bench.cluster` runs the schedulers one after another on the same state, on workloads of Kubernetes'
scheduler_perf and some with policies, and writes a report. The null scheduler picks a random node. Requires the
programs that `make test` builds.
"""
