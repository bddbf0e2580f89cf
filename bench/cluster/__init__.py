"""Schedulers side by side on a real API server: kube-scheduler, a null scheduler that places at random, policysched.

`python -m bench.cluster` runs them one after the other on the same state, on the workloads of Kubernetes'
scheduler_perf and some of our own, and writes a report with ratios first. It needs the programs that `make test`
builds.
"""
