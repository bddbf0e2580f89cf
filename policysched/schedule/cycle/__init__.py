"""The scheduling cycle: given a pod, which nodes can take it and which of them are best.

Comes in: a pod, a profile, the cluster's columns. Goes out: a decision, and its record. Pods of a class share an
`evaluation`, which asks plugins again only about rows that changed; `per_pod_results` adds what belongs to one
pod alone, `results` keeps what each plugin answers. `engine` decides, `record` describes a decision,
`what_if` asks about other pods on a node.
"""
