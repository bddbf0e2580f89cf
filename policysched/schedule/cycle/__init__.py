"""The scheduling cycle: finds the feasible nodes of a pod, and chooses the best node.

`engine` decides, `record` describes a decision. Pods of a class share `class_results`, which refresh changed rows only.
Each pod has an `evaluation`; `per_pod_results`, `nominated_pods` and `with_extenders` add results for one pod.
`results` has the results of plugins, `what_if` evaluates nodes with other pods.
"""
