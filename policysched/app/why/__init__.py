"""Say why a pod is where it is, or why it is nowhere, and what would change that.

Comes in: a cluster from files or a server, and the name of a pod in it. Goes out: an `Explanation`: what stands against
which nodes, repairs that were tried, scores side by side. All of it is what the engine of the scheduler says.
`inputs` finds the pod, `asking` asks the engine about changed ones. `obstacles` takes rejections apart, with
`pod_parts` and `rule_parts`; `repairs` groups them and tries `changes`; `comparison` sets two nodes side by side.
`results` are the values, `tables` what people see, and `why` puts all together.
"""
