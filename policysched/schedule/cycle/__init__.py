"""The scheduling cycle: feasible nodes of a pod, and the best of them.

`engine` decides, `record` describes a decision. Pods of a class share an `evaluation`, which refreshes changed rows
only; `per_pod_results` adds answers for one pod, `results` caches answers of plugins, `what_if` evaluates nodes with
other pods.
"""
